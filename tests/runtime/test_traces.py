"""The trace that a run leaves: every kind of span under its real parent, ended by whoever ended what it tells of."""

from __future__ import annotations

from runtime_core import commands, ports, tracing
from runtime_core.models import Interrupt, Run
from tests.runtime.test_children import go_on, supervisor, worker_agent
from tests.runtime.world import World, actor, call, calls, decide_on, drive, open_interrupts
from traces.models import SpanRow


def spans(run: Run) -> dict[str, SpanRow]:
    """The run's spans by kind; the last of each."""
    ports.spans().flush()
    return {row.kind: row for row in SpanRow.objects.filter(run_id=run.id)}


def test_spans_hang_on_what_asked_for_them(world: World) -> None:
    run = drive(world.start([{"calls": [call("ledger_append", text="x")]}, {"text": "done"}]))
    [asked] = open_interrupts(run)
    waiting = spans(run)

    assert (waiting["run"].status, waiting["interrupt"].status) == ("open", "open")
    decide_on(asked, world.bob, "approve")
    drive(run)
    found = spans(run)
    rows = list(SpanRow.objects.filter(run_id=run.id, kind="llm").order_by("step"))

    assert {row.parent_id for row in rows} == {run.id}
    assert found["tool"].parent_id == found["interrupt"].parent_id == rows[0].id
    assert (found["decision"].parent_id, found["decision"].name) == (asked.id, "approve")
    assert found["checkpoint"].parent_id == run.id, "the second claim went on from one"
    assert {row.status for row in found.values()} == {"ok"}
    [made] = calls(run)
    assert tracing.of_call(found["tool"].id, found["tool"].epoch) == made.id
    assert sum(row.input_tokens for row in rows) == Run.objects.get(id=run.id).input_tokens


def test_a_parked_run_that_is_cancelled_leaves_nothing_open(world: World) -> None:
    run = drive(world.start([{"calls": [call("ledger_append", text="x")]}]))
    commands.cancel_run(actor(world.alice), run)

    found = spans(run)

    assert (found["run"].status, found["interrupt"].status) == ("cancelled", "cancelled")
    assert not SpanRow.objects.filter(run_id=run.id, ended_at=None).exists()


def test_what_was_handed_on_has_a_kind_of_its_own(world: World) -> None:
    worker_agent(world)
    run = drive(supervisor(world, "1"))
    go_on()
    for one in Interrupt.objects.filter(status="open"):
        decide_on(one, world.bob, "approve")
    go_on()

    handed = spans(run)["subagent"]

    assert handed.attrs["agent"] == "Worker"
    assert SpanRow.objects.get(id=handed.parent_id).kind == "llm"

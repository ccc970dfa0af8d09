"""Cancel reaches the work wherever it is: nothing is left 2 s later, and status, ledger and events are right."""

from __future__ import annotations

import time
from typing import Any

import pytest

from runtime_core import commands, transitions
from runtime_core.errors import IllegalTransition, Withdrawn
from runtime_core.loop import parked
from runtime_core.models import Run
from runtime_core.scheduling import reconcile
from runtime_core.states import RunStatus
from tests.runtime.tools import effects, effects_file
from tests.runtime.workers import Worker, processes_with
from tests.runtime.world import (
    World,
    actor,
    call,
    calls,
    decide_on,
    drive,
    events,
    fresh,
    open_interrupts,
    statuses,
    texts,
    together,
    wait_until,
)


def cancelled_within_two_seconds(world: World, run: Run) -> Run:
    asked_at = time.monotonic()
    shown = commands.cancel_run(actor(world.alice), run)
    assert shown.cancelling or shown.status == "cancelled"
    wait_until(lambda: fresh(run).state.ended, 10, "cancelled")
    assert time.monotonic() - asked_at < 2
    run = fresh(run)
    assert run.status == "cancelled"
    assert statuses(run)[-1][1:] == ("cancelled", "cancel")
    assert [e.type for e in events(run)].count("done") == 1
    assert events(run)[-1].type == "done"
    return run


def test_d1_cancel_closes_a_streaming_model_call_and_keeps_the_partial_text(
    world: World, worker: Worker
) -> None:
    long = "word " * 2_000
    run = world.start([{"text": long}], chunk_ms=10)
    wait_until(lambda: sum(map(len, texts(run).values())) > 100, 20, "some text")

    run = cancelled_within_two_seconds(world, run)

    text = "".join(texts(run).values())
    assert 0 < len(text) < len(long)
    assert run.output is None
    assert run.output_tokens > 0


def test_cancel_stops_a_running_tool(world: World, worker: Worker) -> None:
    run = world.start([{"calls": [call("wait_for_stop"), call("look")]}, {"text": "never"}])
    wait_until(effects_file().with_name("waiting").exists, 20, "the tool works")

    run = cancelled_within_two_seconds(world, run)

    assert [c.status for c in calls(run)] == ["cancelled", "cancelled"]


def test_cancel_kills_a_subprocess_tree(world: World, worker: Worker) -> None:
    marker = f"marker-{world.project.slug}-{time.monotonic_ns()}"
    code = (
        f"import subprocess,time; subprocess.Popen(['sleep','300.5','--','{marker}']) if 0 else None; "
        f"p=subprocess.Popen(['sh','-c','sleep 300 # {marker}']); time.sleep(300)"
    )
    run = world.start(
        [{"calls": [call("run_command", argv=["python3", "-c", code, marker])]}, {"text": "never"}],
        tools=["run_command"],
        workspace="evals/fixtures/slugify",
    )
    wait_until(lambda: len(processes_with(marker)) >= 2, 20, "the tree runs")

    run = cancelled_within_two_seconds(world, run)

    wait_until(lambda: not processes_with(marker), 2, "no process left")
    assert calls(run)[0].status == "cancelled"


def test_d4_cancel_withdraws_open_interrupts_and_a_late_approve_does_nothing(world: World) -> None:
    run = drive(
        world.start(
            [{"calls": [call("ledger_append", text=str(n)) for n in range(3)]}, {"text": "x"}]
        )
    )
    waiting = open_interrupts(run)
    assert len(waiting) == 3

    run = cancelled_within_two_seconds(world, run)

    assert open_interrupts(run) == []
    assert {i.status for i in run.interrupts.all()} == {"withdrawn"}
    for interrupt in waiting:
        with pytest.raises(Withdrawn):
            decide_on(interrupt, world.bob)
    assert effects() == []
    assert {c.status for c in calls(run)} == {"cancelled"}


def test_d4_race_of_approve_and_cancel_has_one_meaning(world: World) -> None:
    agent = world.agent([{"calls": [call("ledger_append", text="r")]}, {"text": "x"}], name="race")
    for _ in range(20):
        approve_or_cancel(world, agent)


def approve_or_cancel(world: World, agent: str) -> None:
    """One round: whoever wins, a cancel before the claim leaves nothing to run."""
    run = drive(world.run_of(agent))
    [interrupt] = open_interrupts(run)
    approved, _ = together(
        lambda: decide_on(interrupt, world.bob),
        lambda: commands.cancel_run(actor(world.alice), run),
    )
    assert not isinstance(approved, Exception) or isinstance(approved, Withdrawn)
    run = fresh(run)
    if run.status == "pending":
        run = drive(run)
    assert run.status == "cancelled"
    assert effects() == []


@pytest.mark.parametrize("worker_dies", [False, True])
def test_d4_a_cancel_in_the_moment_of_asking_leaves_nothing_open(
    world: World, monkeypatch: pytest.MonkeyPatch, worker_dies: bool
) -> None:
    run = world.start([{"calls": [call("ledger_append", text="r")]}, {"text": "x"}])
    real = transitions.commit_step

    def cancelled_before(claim: Any, seen: Any, step: Any) -> Any:
        if step.to is RunStatus.INTERRUPTED:
            together(lambda: commands.cancel_run(actor(world.alice), run))
        return real(claim, seen, step)

    with monkeypatch.context() as patch:
        patch.setattr(transitions, "commit_step", cancelled_before)
        if worker_dies:
            patch.setattr(parked, "finish_cancel", lambda _: False)
        run = drive(run)
    if worker_dies:
        assert run.status == "interrupted"
        assert reconcile.reconcile() == 1
        run = fresh(run)

    assert run.status == "cancelled"
    assert open_interrupts(run) == []
    assert [c.status for c in calls(run)] == ["cancelled"]
    assert [e.type for e in events(run)].count("done") == 1
    assert effects() == []


def test_a_pending_run_is_cancelled_at_once_and_only_once(world: World) -> None:
    run = world.start([{"text": "x"}])
    cancelled_within_two_seconds(world, run)
    with pytest.raises(IllegalTransition):
        commands.cancel_run(actor(world.alice), run)


def test_d5_a_thread_is_usable_after_a_cancel_in_the_middle_of_its_calls(world: World) -> None:
    from runtime_core.gateway.messages import answers_every_call, load

    run = drive(
        world.start(
            [
                {
                    "calls": [
                        call("look"),
                        call("ledger_append", text="1"),
                        call("ledger_append", text="2"),
                    ]
                },
                {"text": "x"},
            ]
        )
    )
    run = cancelled_within_two_seconds(world, run)
    again = world.start([{"text": "Here I am again."}], thread_id=run.thread_id)
    again = drive(again)

    assert again.status == "completed"
    import json

    history = [load(json.loads(m.body)) for m in again.thread.messages.order_by("position")]
    assert answers_every_call(history)

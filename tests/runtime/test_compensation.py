"""What a run did is taken back in reverse order, once, through any crash; what cannot be stays and says so."""

from __future__ import annotations

from typing import Any

import pytest
from django.db.models.functions import Now
from django.test import Client

from runtime_core import commands
from runtime_core.errors import IllegalTransition, InvalidPayload
from runtime_core.loop import compensation
from runtime_core.models import Interrupt, Message, Run, ToolCall
from runtime_core.scheduling import reconcile
from tests.runtime.tools import at_point, effects
from tests.runtime.world import (
    World,
    actor,
    call,
    calls,
    decide_on,
    drive,
    events,
    expire_lease,
    fresh,
    open_interrupts,
    statuses,
    together,
)
from tests.runtime.zygote import Zygote
from traces.models import AuditEntry


def booked(world: World, *places: str, **more: Any) -> Run:
    """A run that has booked these places, noted something, and waits for a payment's approval."""
    books = [{"calls": [call("book", place=place)]} for place in places]
    rest = {"calls": [call("note", text="n"), call("ledger_append", text="pay")]}
    return drive(world.start([*books, rest, {"text": "Done."}], **more))


def cancelled(world: World, *places: str, **more: Any) -> Run:
    return commands.cancel_run(actor(world.alice), booked(world, *places, **more))


def undone_of(run: Run) -> list[str]:
    return [c.status for c in calls(run) if c.tool == "book"]


def test_effects_are_taken_back_in_reverse_order_by_a_run_of_its_own(world: World) -> None:
    run = cancelled(world, "a", "b", "c")
    before = compensation.outlook(run)
    assert [c.args_redacted["place"] for c in before.can_undo] == ["c", "b", "a"]
    assert [c.tool for c in before.stays] == ["note"]

    made = commands.compensate_run(actor(world.alice), run)
    assert (made.status, made.undoes_id, made.created_by) == ("pending", run.id, world.alice)
    with pytest.raises(IllegalTransition, match="already"):
        commands.compensate_run(actor(world.alice), run)
    made = drive(made)

    assert (made.status, made.output) == ("completed", "Taken back: book, book, book.")
    assert [e for e in effects() if not e.endswith(":n")] == [
        "book:a", "book:b", "book:c", "cancel:c", "cancel:b", "cancel:a",
    ]  # fmt: skip
    rows = calls(made)
    assert [r.status for r in rows] == ["succeeded"] * 3
    originals = {c.id: c for c in calls(run)}
    for row in rows:
        original = originals[row.undoes_id]
        assert original.args_text == row.args_text
        assert original.status == "compensated"
        assert original.idempotency_key != row.idempotency_key
    assert fresh(run).status == "cancelled", "it stays as it ended"
    assert events(run)[-1].type == "done"
    after = compensation.outlook(run)
    assert (len(after.undone), list(after.can_undo), after.by) == (3, [], made.id)
    [entry] = AuditEntry.objects.filter(action="run.compensated")
    assert entry.run_id == run.id
    with pytest.raises(IllegalTransition, match="Nothing"):
        commands.compensate_run(actor(world.alice), run)


def test_the_page_and_the_api_show_what_stays_and_take_back_what_can_be(world: World) -> None:
    run = cancelled(world, "a")
    client = Client()
    client.force_login(world.alice)
    page = client.get(f"/runs/{run.id}/").content.decode()
    assert "Can be taken back" in page and "Stays done" in page
    assert "Take back" in client.get(f"/runs/{run.id}/compensate/").content.decode()
    found = client.get(f"/api/v1/runs/{run.id}/effects").json()
    assert [e["tool"] for e in found["can_undo"]] == ["book"]
    assert [e["tool"] for e in found["stays"]] == ["note"]

    viewer, stranger = Client(), Client()
    viewer.force_login(world.victor)
    stranger.force_login(world.carol)
    assert viewer.post(f"/api/v1/runs/{run.id}/compensate").status_code == 403
    assert viewer.get(f"/api/v1/runs/{run.id}/effects").status_code == 200
    assert stranger.post(f"/api/v1/runs/{run.id}/compensate").status_code == 404
    assert stranger.get(f"/api/v1/runs/{run.id}/effects").status_code == 404
    assert not Run.objects.filter(undoes=run).exists()

    answer = client.post(f"/api/v1/runs/{run.id}/compensate")
    assert (answer.status_code, answer.json()["undoes"]) == (202, str(run.id))
    again = client.post(f"/api/v1/runs/{run.id}/compensate")
    assert (again.status_code, again.json()["code"]) == (409, "illegal_transition")
    made = drive(Run.objects.get(id=answer.json()["id"]))
    [row] = client.get(f"/api/v1/runs/{made.id}/tool-calls").json()["items"]
    assert (row["status"], row["undoes"]) == ("succeeded", str(calls(run)[0].id))
    assert "Taken back" in client.get(f"/runs/{run.id}/").content.decode()
    assert str(run.id) in client.get(f"/runs/{made.id}/").content.decode()


def test_an_agent_may_want_it_by_itself_and_a_run_that_went_well_keeps_its_effects(
    world: World,
) -> None:
    run = cancelled(world, "a", compensate="auto")
    fine = drive(
        world.start([{"calls": [call("book", place="z")]}, {"text": "ok"}], compensate="auto")
    )
    asks = cancelled(world, "m")
    for _ in range(2):
        reconcile.reconcile()
    [made] = Run.objects.filter(undoes__isnull=False)
    assert made.undoes_id == run.id

    assert drive(made).status == "completed"
    assert undone_of(run) == ["compensated"]
    assert undone_of(fine) == undone_of(asks) == ["succeeded"]
    assert effects()[-1] == "cancel:a"


def test_a_failed_run_is_taken_back_and_cannot_be_retried_then(world: World) -> None:
    turns = [{"calls": [call("book", place="a")]}]  # and then the script ends
    run = drive(world.start(turns))
    assert run.status == "failed"
    drive(commands.compensate_run(actor(world.alice), run))

    with pytest.raises(IllegalTransition, match="taken back"):
        commands.retry_run(actor(world.alice), run)
    for told in (1, 0):
        again = drive(world.start([{"text": "I see."}], thread_id=run.thread_id))
        assert again.status == "completed", again.error
        heard = [str(m.body) for m in Message.objects.filter(run=again)]
        assert sum("this was taken back" in body and '"place' in body for body in heard) == told
    assert effects() == ["book:a", "cancel:a"]


def test_what_cannot_be_taken_back_stops_the_rest_and_is_tried_again_on_demand(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = cancelled(world, "a", "sticky", "c")
    made = drive(commands.compensate_run(actor(world.alice), run))

    assert made.status == "failed"
    assert made.error and made.error["code"] == "compensation_failed"
    assert undone_of(run) == ["succeeded", "succeeded", "compensated"]
    with pytest.raises(IllegalTransition):
        commands.retry_run(actor(world.alice), made)

    again = commands.compensate_run(actor(world.alice), run)
    assert [c.args_redacted["place"] for c in calls(again)] == ["sticky", "a"]
    keys = {c.idempotency_key for c in [*calls(made), *calls(again)]}
    assert len(keys) == 5, "a try that failed for sure is over; the next one has its own key"
    assert drive(again).status == "failed"


def test_a_run_that_goes_on_is_not_taken_back(world: World) -> None:
    run = booked(world, "a")
    with pytest.raises(IllegalTransition, match="cancel it first"):
        commands.compensate_run(actor(world.alice), run)
    assert not Run.objects.filter(undoes=run).exists()


@pytest.mark.faults
@pytest.mark.parametrize(("at", "happened"), [("before-unbook", False), ("after-unbook", True)])
def test_a_crash_while_taking_back_asks_a_person_and_does_nothing_twice(
    world: World, zygote: Zygote, at: str, happened: bool
) -> None:
    run = cancelled(world, "a", "b")
    made = commands.compensate_run(actor(world.alice), run)
    at_point("kill", at).touch()
    assert zygote.drive(made.id)["signal"] == 9
    expire_lease(made)
    made = drive(fresh(made), "heir")

    [asked] = open_interrupts(made)
    assert asked.kind == "outcome_unknown"
    assert asked.reason.startswith("Taking back book was started")
    assert asked.detail["worker"] and asked.detail["started_at"]
    if happened:
        decide_on(asked, world.bob, "respond", response="The hotel says: cancelled.")
    else:
        decide_on(asked, world.bob)
    made = drive(made)

    assert made.status == "completed", made.error
    assert undone_of(run) == ["compensated", "compensated"]
    assert [e for e in effects() if e.startswith("cancel")] == ["cancel:b", "cancel:a"]
    statuses(made)


@pytest.mark.faults
def test_taking_back_that_is_harmless_to_repeat_is_repeated_with_its_key(
    world: World, zygote: Zygote
) -> None:
    turns = [{"calls": [call("hold_seat", seat="7")]}, {"text": "Held."}]
    run = drive(world.start(turns))
    made = commands.compensate_run(actor(world.alice), run)
    at_point("kill", "after-release").touch()
    assert zygote.drive(made.id)["signal"] == 9
    expire_lease(made)
    made = drive(fresh(made), "heir")

    assert made.status == "completed", made.error
    [row], [held] = calls(made), calls(run)
    assert (row.attempts, row.effect, held.status) == (2, "idempotent", "compensated")
    assert effects() == ["hold:7", f"release:{row.idempotency_key}:{held.idempotency_key}"]


@pytest.mark.faults
def test_what_nobody_knows_is_taken_back_if_it_happened(world: World, zygote: Zygote) -> None:
    run = world.start([{"calls": [call("book", place="a")]}, {"text": "ok"}])
    at_point("kill", "after-book").touch()
    assert zygote.drive(run.id)["signal"] == 9
    expire_lease(run)
    run = drive(fresh(run))
    [asked] = open_interrupts(run)
    assert asked.kind == "outcome_unknown"
    client = Client()
    client.force_login(world.bob)
    page = client.get(f"/inbox/{asked.id}/").content.decode()
    for said in (
        "It did not happen: run it again",
        "It happened: record the result",
        "Stop the run",
        "take back what the run did",
        "Began",
        str(calls(run)[0].worker),
    ):
        assert said in page, said
    with pytest.raises(InvalidPayload, match="compensate"):
        decide_on(asked, world.bob, compensate=True)
    form = {
        "action": "reject",
        "version": asked.version,
        "digest": asked.digest,
        "reason": "Stop, and take it back.",
        "compensate": "on",
    }
    assert client.post(f"/inbox/{asked.id}/", form).status_code in (200, 302, 303)
    Run.objects.filter(id=run.id).update(available_at=Now())
    run = drive(run)
    assert run.status == "failed"
    reconcile.reconcile()

    made = drive(Run.objects.get(undoes=run))

    assert made.status == "completed", made.error
    assert effects() == ["book:a", "cancel:a"]
    assert not Interrupt.objects.filter(run=made).exists()


def test_two_that_want_it_at_once_begin_it_once(world: World) -> None:
    run = cancelled(world, "a")
    Run.objects.filter(id=run.id).update(compensation="due")
    results = together(
        *(lambda: commands.compensate_run(actor(world.alice), run) for _ in range(4)),
        reconcile.reconcile,
        reconcile.reconcile,
    )
    assert Run.objects.filter(undoes=run).count() == 1
    assert ToolCall.objects.filter(undoes__run=run).count() == 1
    assert all(isinstance(r, Run | int | IllegalTransition) for r in results), results

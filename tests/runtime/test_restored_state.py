"""A stored state is proven before anything goes on from it; what does not verify stops where a person sees it."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import pytest
from django.db import connection
from django.db.models import Model
from django.test import Client

from runtime_core import commands
from runtime_core.checkpoints import snapshot, store
from runtime_core.checkpoints.plain import require_plain
from runtime_core.checkpoints.upcast import SCHEMA_VERSION, UPCASTERS, upcast
from runtime_core.errors import StateNotPlain, StateUnusable
from runtime_core.forget import forgetting
from runtime_core.models import Checkpoint, Message, Run
from runtime_core.tools import workspace
from runtime_core.values import SYSTEM, Audit
from tests.runtime.tools import effects
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
)

WORKSPACE = "evals/fixtures/slugify"
Mend = Callable[[], object]
TURNS = [
    {"text": "I look.", "calls": [call("look")]},
    {"text": "I pay.", "calls": [call("ledger_append", text="pay")]},
    {"text": "Paid."},
]


def waiting_to_pay(world: World, **more: str) -> Run:
    """A run whose payment is approved, and whose next worker has yet to restore it."""
    run = drive(world.start(TURNS, **more))
    decide_on(open_interrupts(run)[0], world.bob)
    return fresh(run)


@pytest.fixture
def approved(world: World) -> Run:
    return waiting_to_pay(world)


def last_message(run: Run) -> Message:
    return Message.objects.filter(run=run).latest("position")


def an_unknown_version(run: Run) -> Mend:
    rows = Checkpoint.objects.filter(run=run)
    rows.update(schema_version=999)
    return lambda: rows.update(schema_version=SCHEMA_VERSION)


def a_flipped_byte(run: Run) -> Mend:
    message = last_message(run)
    body = message.body
    message.body = body.replace("pay", "pax")
    message.save()
    return lambda: given(message, body=body)


def a_changed_counter(run: Run) -> Mend:
    last = store.newest(run.id)
    assert last is not None
    state = last.state
    last.state = {**state, "steps": 1}
    last.save()
    return lambda: given(last, state=state)


def a_changed_seal(run: Run) -> Mend:
    return doing(run, "body = set_byte(body, 60, 255 - get_byte(body, 60)) WHERE run_id = %s")


def messages_in_each_others_place(run: Run) -> Mend:
    return doing(
        run,
        "body = other.body FROM message other WHERE message.run_id = %s "
        "AND other.run_id = message.run_id AND other.position + message.position = 3",
    )


def doing(run: Run, change: str) -> Mend:
    """A change by hand, which a second time undoes."""

    def once() -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"UPDATE message SET {change}", [run.id])  # noqa: S608
            assert cursor.rowcount > 1

    once()
    return once


def given(row: Model, **values: object) -> None:
    for name, value in values.items():
        setattr(row, name, value)
    row.save()


def a_missing_message(run: Run) -> Mend:
    message = last_message(run)
    entry = Audit("test.forgot", SYSTEM, "message", str(message.pk))
    with forgetting([entry]):
        Message.objects.filter(id=message.id).delete()
    return lambda: message.save(force_insert=True)


def missing_checkpoints(run: Run) -> Mend:
    rows = list(Checkpoint.objects.filter(run=run))
    Checkpoint.objects.filter(run=run).delete()
    return lambda: Checkpoint.objects.bulk_create(rows)


def a_missing_workspace(run: Run) -> Mend:
    there = workspace.path_of(run.id)
    aside = there.with_suffix(".aside")
    there.rename(aside)
    return lambda: aside.rename(there)


HARMS = [
    (an_unknown_version, "schema version 999"),
    (a_flipped_byte, "changed after it was saved"),
    (a_changed_counter, "changed after it was saved"),
    (a_changed_seal, "changed or moved"),
    (messages_in_each_others_place, "changed or moved"),
    (a_missing_message, "1 of the messages that it covers are missing"),
    (missing_checkpoints, "none of its checkpoints"),
    (a_missing_workspace, "workspace is gone"),
]


def test_b5_what_does_not_verify_waits_for_a_person_and_goes_on_once_it_is_mended(
    world: World,
) -> None:
    for done, (harm, said) in enumerate(HARMS):
        place = {"workspace": WORKSPACE} if harm is a_missing_workspace else {}
        run = waiting_to_pay(world, **place)
        mend, steps = harm(run), run.steps

        run = drive(run)

        assert (run.status, run.steps, effects()) == ("paused", steps, ["pay"] * done), said
        assert run.error and run.error["code"] == "state_unusable"
        assert said in run.error["message"]
        assert statuses(run)[-1] == ("running", "paused", "unusable")
        assert events(run, "error")[-1].data["code"] == "state_unusable"
        assert [c.status for c in calls(run)] == ["succeeded", "approved"]

        mend()
        commands.resume_run(actor(world.alice), run)
        run = drive(run)

        assert (run.status, len(effects())) == ("completed", done + 1), said
        assert run.error is None


def test_b5_a_person_may_fork_from_the_last_sound_checkpoint_or_cancel(
    world: World, approved: Run
) -> None:
    broken = store.newest(approved.id)
    assert broken is not None
    a_flipped_byte(approved)
    run = drive(approved)

    assert run.error is not None
    sound = Checkpoint.objects.get(id=run.error["sound_checkpoint"])
    assert sound.reason == "round", "the one after the look, before the message that was changed"
    with pytest.raises(StateUnusable):
        commands.fork_run(actor(world.alice), run, broken.id)
    client = Client()
    client.force_login(world.alice)
    page = client.get(f"/runs/{run.id}/").content.decode()
    assert "state_unusable" in page and f"/runs/{run.id}/fork/" in page
    assert "sound checkpoint" in client.get(f"/runs/{run.id}/fork/").content.decode()
    made = client.post(f"/runs/{run.id}/fork/")
    fork = drive(Run.objects.get(parent=run))
    assert made["Location"] == f"/runs/{fork.id}/"
    assert [c.tool for c in calls(fork)] == ["ledger_append"], "it has looked, and asks anew"
    assert open_interrupts(fork)

    assert commands.cancel_run(actor(world.alice), run).status == "cancelled"
    assert effects() == []


def test_b5_an_older_version_is_brought_up_to_date(approved: Run) -> None:
    old = store.newest(approved.id)
    assert old is not None
    bodies = list(Message.objects.filter(run=approved).order_by("position"))
    rolling = snapshot.extend(snapshot.EMPTY_DIGEST, [m.body for m in bodies])
    state = {"next_step": old.state["next_step"], "steps": old.state["steps"]}
    old.state, old.schema_version, old.digest = state, 1, snapshot.seal(rolling, state)
    old.save()

    run = drive(approved)

    assert (run.status, effects()) == ("completed", ["pay"])
    assert store.newest(run.id).schema_version == SCHEMA_VERSION  # type: ignore[union-attr]


def test_b5_every_older_version_has_a_way_up_and_no_other_has() -> None:
    assert sorted(UPCASTERS) == list(range(1, SCHEMA_VERSION))
    for version in (0, SCHEMA_VERSION + 1, 999):
        with pytest.raises(StateUnusable, match=str(version)):
            upcast({}, version)


class Colour(enum.StrEnum):
    RED = "red"


@dataclass
class Point:
    x: int


@pytest.mark.parametrize(
    ("state", "at"),
    [
        ({"a": {"b": [1, Point(2)]}}, "state.a.b[1]"),
        ({"a": Colour.RED}, "state.a"),
        ({"a": Counter("x")}, "state.a"),
        ({"a": (1, 2)}, "state.a"),
        ({"a": {1: "x"}}, "state.a"),
        ({"a": {Colour.RED: "x"}}, "state.a"),
        ({"a": Decimal(1)}, "state.a"),
        ({"a": [float("nan")]}, "state.a[0]"),
        ({"a": "x\x00"}, "state.a"),
        ({"a": "\ud800"}, "state.a"),
        ({"a": {1, 2}}, "state.a"),
        ({"a": b"x"}, "state.a"),
    ],
)
def test_b5_a_state_that_would_come_back_otherwise_is_refused_where_it_is_saved(
    state: object, at: str
) -> None:
    with pytest.raises(StateNotPlain, match="^" + at.replace("[", r"\[")) as refused:
        snapshot.row(step=0, reason="plan", messages=0, rolling="", state=state)
    assert refused.value.data["at"] == at


def test_b5_plain_json_is_taken_as_it_is() -> None:
    state = {"a": [1, 2.5, None, True, "ü", {"b": {}}], "c": 10**30}
    assert require_plain(state) is state
    deep: list[object] = []
    for _ in range(100):
        deep = [deep]
    with pytest.raises(StateNotPlain):
        require_plain(deep)


def test_checkpoints_say_why_they_were_taken(world: World, approved: Run) -> None:
    run = drive(approved)
    rows = Checkpoint.objects.filter(run=run).order_by("id")
    told = [e.data["reason"] for e in events(run, "checkpoint")]
    assert [row.reason for row in rows] == told
    assert told == ["plan", "round", "interrupt", "decided", "round", "end"]

    paused = world.start([{"calls": [call("look")]}, {"text": "x"}], limits={"max_steps": 1})
    paused = drive(paused)
    assert paused.status == "paused"
    assert [e.data["reason"] for e in events(paused, "checkpoint")][-1:] == ["pause"]

    cancelled = drive(world.start(TURNS[1:]))
    commands.cancel_run(actor(world.alice), cancelled)
    assert [e.data["reason"] for e in events(cancelled, "checkpoint")] == ["interrupt", "end"]

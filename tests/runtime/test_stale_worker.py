"""A worker that lost its run writes nothing, says nothing and executes nothing afterwards."""

from __future__ import annotations

import threading

import pytest
from django.conf import settings
from django.db import OperationalError, connection, transaction

from runtime_core import ports, transitions
from runtime_core.errors import Fenced
from runtime_core.limits import limits
from runtime_core.loop.control import watch
from runtime_core.models import RunLease
from runtime_core.scheduling import reconcile
from runtime_core.states import RunStatus
from runtime_core.transitions import NewEvent, StepCommit
from tests.runtime.tools import at_point, effects, effects_file
from tests.runtime.world import (
    World,
    call,
    decide_on,
    drive,
    events,
    expire_lease,
    fresh,
    open_interrupts,
    statuses,
    together,
    wait_until,
)
from tests.runtime.zygote import Zygote
from traces.models.span import SpanRow

pytestmark = pytest.mark.faults

PAY = [{"calls": [call("ledger_append", text="pay")]}, {"text": "Paid."}]
NAME = "one-name-for-all"


def test_b4_a_sleeper_in_a_tool_loses_to_a_worker_of_the_same_name(
    world: World, zygote: Zygote
) -> None:
    run = drive(world.start(PAY))
    decide_on(open_interrupts(run)[0], world.bob)
    at_point("stop", "after-effect").touch()
    sleeper = zygote.drive(run.id, worker=NAME)
    epoch = fresh(run).lease_epoch

    expire_lease(run)
    run = drive(run, NAME)
    decide_on(open_interrupts(run)[0], world.bob, "respond", response="it is paid")
    run = drive(run, NAME)
    assert run.status == "completed"
    before = [(e.seq, e.type, e.data) for e in events(run)]

    zygote.wait(sleeper["stopped"])

    assert [(e.seq, e.type, e.data) for e in events(run)] == before
    after = fresh(run)
    assert (after.status, after.version, after.output) == ("completed", run.version, run.output)
    assert effects() == ["pay"]
    ports.spans().flush()
    old = SpanRow.objects.filter(run_id=run.id, epoch=epoch, kind="tool")
    assert {span.status for span in old} == {"abandoned"}


def test_b4_a_sleeper_does_not_take_the_lease_of_its_heir(world: World, zygote: Zygote) -> None:
    run = world.start([{"calls": [call("note", text="n")]}, {"text": "ok"}])
    at_point("stop", "after-note").touch()
    sleeper = zygote.drive(run.id, worker=NAME)
    expire_lease(run)
    claimed = transitions.claim(NAME, run.id)
    assert claimed
    lease = RunLease.objects.get(run=run)

    zygote.wait(sleeper["stopped"])

    kept = RunLease.objects.get(run=run)
    assert (kept.epoch, kept.until) == (claimed[0].epoch, lease.until)
    assert fresh(run).status == "running"


def test_b4_a_worker_whose_heartbeat_is_blocked_stops_itself(world: World, zygote: Zygote) -> None:
    run = world.start([{"calls": [call("wait_for_stop")]}, {"text": "ok"}])
    short = {"lease_seconds": 3, "heartbeat_seconds": 1, "self_fence_seconds": 2}
    ended: dict[str, object] = {}
    child = threading.Thread(target=lambda: ended.update(zygote.drive(run.id, limits=short)))
    child.start()
    wait_until(effects_file().with_name("waiting").exists, 20, "the tool works")

    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        cursor.execute("SELECT 1 FROM run_lease WHERE run_id = %s FOR UPDATE", [run.id])
        child.join(15)
        assert not child.is_alive(), "it works on without a lease"

    assert fresh(run).status == "running", "it may not even say that it stopped"
    assert not events(run, "tool_call_result")
    expire_lease(run)
    assert fresh(run).status == "pending"


def test_a_worker_that_sleeps_inside_a_transaction_is_cut_off(world: World, zygote: Zygote) -> None:
    run = world.start([{"text": "hello"}])
    # The product's own time, 5 s, is only shortened here.
    assert limits().lease_seconds * 1_000 > settings.IDLE_IN_TRANSACTION_TIMEOUT_MS
    sooner = "SET idle_in_transaction_session_timeout = 1000"
    sleeper = zygote.drive(run.id, at=0, action="stop", only="commit.inside", sql=sooner)

    def free() -> bool:
        try:
            expire_lease(run)
        except OperationalError:
            connection.close()
            return False
        return fresh(run).status == "pending"

    wait_until(free, 15, "the database ends the sleeper's transaction")
    run = drive(run)
    assert run.status == "completed"
    zygote.wait(sleeper["stopped"])
    assert [e.type for e in events(run)].count("done") == 1


def test_b4_a_worker_that_was_cut_off_in_a_nap_commits_its_step_again(
    world: World, zygote: Zygote
) -> None:
    run = world.start([{"text": "hello"}])
    sooner = "SET idle_in_transaction_session_timeout = 200"
    sleeper = zygote.drive(run.id, at=0, action="stop", only="commit.inside", sql=sooner)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM run WHERE id = %s FOR UPDATE", [run.id]
        )  # until it is cut off
    assert fresh(run).status == "running"

    zygote.wait(sleeper["stopped"], long=False)

    assert (fresh(run).status, fresh(run).error) == ("completed", None)
    assert [e.type for e in events(run)].count("done") == 1


def test_every_write_of_a_worker_needs_its_epoch(world: World) -> None:
    run = world.start([{"text": "x"}])
    claimed = transitions.claim("old", run.id)
    assert claimed
    old, last_seq = claimed
    seen = transitions.Seen(fresh(run).version, last_seq, False, False)
    expire_lease(run)
    heir = transitions.claim("new", run.id)
    assert heir
    now = fresh(run)
    stale = transitions.Seen(now.version, now.last_seq, False, False)
    for picture in (seen, stale):  # even one that knows the newest version
        with pytest.raises(Fenced):
            transitions.append(old, picture, [NewEvent("progress", {"message": "late"})])
        with pytest.raises(Fenced):
            transitions.commit_step(
                old, picture, StepCommit(to=RunStatus.COMPLETED, cause="finished")
            )
    assert transitions.release(old) is None
    assert transitions.heartbeat([old]) == set()
    assert fresh(run).version == now.version
    assert len(events(run)) == now.last_seq
    assert transitions.heartbeat([heir[0]]) == {run.id}


def test_a_process_that_claims_its_lost_run_anew_stops_its_older_work(world: World) -> None:
    run = world.start([{"text": "x"}])
    first = transitions.claim("me", run.id)
    assert first
    with watch.held(first[0]) as old:
        expire_lease(run)
        second = transitions.claim("me", run.id)
        assert second
        with watch.held(second[0]) as new:
            assert (old.stop.is_set(), old.reason) == (True, "lost")
            assert not new.stop.is_set()


def test_a_write_with_an_old_version_is_refused(world: World) -> None:
    run = world.start([{"text": "x"}])
    claimed = transitions.claim("me", run.id)
    assert claimed
    seen = transitions.Seen(fresh(run).version, claimed[1], False, False)
    transitions.commit_step(claimed[0], seen, StepCommit(next_step=1))
    with pytest.raises(Fenced):
        transitions.commit_step(claimed[0], seen, StepCommit(next_step=1))


def test_a_trace_that_cannot_be_closed_keeps_no_run_waiting(world: World) -> None:
    run = world.start([{"text": "x"}])
    assert transitions.claim("gone", run.id)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE run_lease SET until = now() - interval '1 s'")

    def broken(*_: object) -> None:
        raise OperationalError("canceling statement due to lock timeout")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(ports.spans()), "abandon", broken)
        assert reconcile.reconcile() == 1
    assert drive(run).status == "completed"


@pytest.mark.race
def test_two_reconcilers_give_a_run_back_once(world: World) -> None:
    runs = [world.start([{"text": "x"}]) for _ in range(4)]
    for run in runs:
        assert transitions.claim("gone", run.id)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE run_lease SET until = now() - interval '1 s'")
    counts = together(*[reconcile.reconcile] * 4)
    assert sum(counts) == 4
    for run in runs:
        assert statuses(run).count(("running", "pending", "lease_lost")) == 1
        assert drive(run).status == "completed"


def test_only_the_databases_clock_counts(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    import datetime as dt

    from django.utils import timezone

    from runtime_core import clock, decisions

    waiting = drive(world.start(PAY))
    held = world.start([{"text": "x"}])
    assert transitions.claim("me", held.id)
    for days in (2, -2):
        wrong = dt.timedelta(days=days)
        real = clock.now
        with monkeypatch.context() as patch:
            patch.setattr(clock, "now", lambda: real() + wrong)  # noqa: B023
            patch.setattr(timezone, "now", lambda: real() + wrong)  # noqa: B023
            assert reconcile.reconcile() == 0
            assert decisions.expire_due() == 0
            assert fresh(held).status == "running"
    monkeypatch.setattr(timezone, "now", lambda: real() + dt.timedelta(days=2))
    decide_on(open_interrupts(waiting)[0], world.bob)
    assert drive(waiting).status == "completed"

"""Quotas of tools and models: a call without a place lets go of its run, and goes on when one is free."""

from __future__ import annotations

import threading

import pytest
from django.db import connection

from runtime_core.loop import places
from runtime_core.loop.drive import advance
from runtime_core.models import Permit, Quota, QuotaKind, Run, RunLease, ToolCall
from runtime_core.scheduling import queue, reconcile
from tests.runtime.test_quotas import limit, watched
from tests.runtime.tools import at_point, effects
from tests.runtime.world import (
    World,
    call,
    calls,
    drive,
    events,
    expire_lease,
    fresh,
    statuses,
    together,
    wait_until,
)

NOTE = [{"calls": [call("note", text="n")]}, {"text": "ok"}]


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """What has a quota is read at once, not when a second is over."""
    monkeypatch.setattr(places, "KNOWN_SECONDS", -1)


def aside(worker: str, run: Run) -> threading.Thread:
    """Drive a run on another thread, which gives its connection back."""

    def body() -> None:
        try:
            advance(worker, run.id)
        finally:
            connection.close()

    thread = threading.Thread(target=body)
    thread.start()
    return thread


def held() -> int:
    return Permit.objects.exclude(held_by=None).count()


def test_a_call_waits_for_its_tool_without_a_worker_and_goes_on_when_a_place_is_free(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(QuotaKind.TOOL, 1, "note")
    first, second, third = (world.start(NOTE) for _ in range(3))
    hold = at_point("hold", "after-note")
    hold.touch()
    working = aside("one", first)
    try:
        wait_until(hold.with_suffix(".reached").exists)
        for run in (second, third):
            waiting = drive(run)
            assert (waiting.status, waiting.waits_for) == ("waiting", "tool:note")
            assert not RunLease.objects.filter(run=run).exists()
        assert [c.status for c in calls(second)] == ["approved"], "no intent without a place"
        found = queue.places([fresh(second), fresh(third)])
        assert [found[run.id].ahead for run in (second, third)] == [0, 1]
        assert statuses(second)[-1] == ("running", "waiting", "quota")
        assert reconcile.wake_due() == 0, "there is no place"
        hints: list[object] = []
        monkeypatch.setattr(places, "_hint", hints.append)
    finally:
        hold.unlink()
        working.join()
    assert fresh(first).status == "completed"
    assert hints == [second.id], "who waited longest is told at once"
    assert (fresh(second).status, fresh(third).status) == ("pending", "waiting")
    latecomer = world.start(NOTE)
    assert drive(latecomer).status == "waiting", "behind those that wait already"
    assert drive(second).status == "completed"
    assert fresh(third).status == "pending"
    assert drive(third).status == "completed"
    assert drive(latecomer).status == "completed"
    assert (len(effects()), held()) == (4, 0)
    for run in (first, second, third, latecomer):
        assert [e.type for e in events(run)].count("tool_call_start") == 1


@pytest.mark.race
def test_no_more_calls_at_once_than_the_tool_or_the_model_may_have(world: World) -> None:
    limit(QuotaKind.TOOL, 2, "note")
    limit(QuotaKind.MODEL, 2, "scripted")
    runs = [world.start(NOTE, chunk_ms=1) for _ in range(10)]

    def at_once() -> int:
        return ToolCall.objects.filter(status="executing").count()

    def work() -> None:
        def done() -> bool:
            reconcile.wake_due()
            while advance("w"):
                pass
            return all(run.state.ended for run in Run.objects.all())

        wait_until(done, 40)

    with watched(at_once) as seen:
        together(*[work] * 4)
    assert {fresh(run).status for run in runs} == {"completed"}
    assert 1 <= max(seen) <= 2
    assert (len(effects()), held()) == (10, 0)


def test_a_lost_workers_place_is_free_and_its_call_needs_one_again(world: World) -> None:
    quota = limit(QuotaKind.TOOL, 1, "charge")
    run = world.start([{"calls": [call("charge", amount=1)]}, {"text": "ok"}])
    hold = at_point("hold", "before-charge")
    hold.touch()
    stalled = aside("stalls", run)
    wait_until(hold.with_suffix(".reached").exists)
    assert held() == 1
    expire_lease(run)
    assert held() == 0
    other = Permit.objects.get()
    Permit.objects.filter(pk=other.pk).update(held_by=world.start(NOTE).id, epoch=1)
    assert drive(run).waits_for == "tool:charge"
    assert calls(run)[0].status == "executing"
    reconcile.dispatch()
    assert fresh(run).status == "waiting", "nobody took its call for one that waits for a child"
    quota.delete()
    assert reconcile.wake_due() == 1, "without the quota nothing is waited for"
    hold.unlink()
    stalled.join()
    assert drive(run).status == "completed"
    assert len([line for line in effects() if line.startswith("charge:")]) == 1


def test_a_model_without_a_place_is_not_asked(world: World) -> None:
    quota = limit(QuotaKind.MODEL, 0, "scripted")
    run = drive(world.start(NOTE))
    assert (run.status, run.waits_for, run.steps) == ("waiting", "model:scripted", 0)
    assert not events(run, "step_start")
    limit(QuotaKind.MODEL, 1, "scripted")
    assert reconcile.wake_due() == 1
    assert drive(run).status == "completed"
    assert Quota.objects.get() == quota
    assert held() == 0

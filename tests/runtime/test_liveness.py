"""Whose process is gone is known at once; who only lost a session, or sleeps, is not taken for dead."""

from __future__ import annotations

import datetime as dt
import json
import signal
import time
from collections.abc import Callable, Iterator

import pytest
from django.db import connection

from runtime_core import transitions
from runtime_core.models import RunLease
from runtime_core.models import Worker as WorkerRow
from runtime_core.scheduling import liveness, reconcile
from runtime_core.scheduling.liveness import LOCK_CLASS, Liveness
from tests.runtime.tools import effects_file
from tests.runtime.workers import Worker
from tests.runtime.world import World, call, fresh, statuses, wait_until

pytestmark = pytest.mark.faults

WAITS = [{"calls": [call("wait_for_stop")]}, {"text": "ok"}]
# Long leases: within a test only the lock can tell.
LIMITS = {"lease_seconds": 300, "heartbeat_seconds": 5, "self_fence_seconds": 250}


@pytest.fixture
def patient(process_env: dict[str, str], world: World) -> Iterator[Worker]:
    running = Worker({**process_env, "INTERLOCK_TEST_LIMITS": json.dumps(LIMITS)})
    try:
        yield running.start()
    finally:
        running.stop()


def lock_is_held() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE classid = %s AND granted", [LOCK_CLASS])
        return bool(cursor.fetchone()[0])


def end_sessions_of_locks() -> None:
    """What a network that forgets its connections does."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE classid = %s AND granted",
            [LOCK_CLASS],
        )


def ticks_until(condition: Callable[[], bool], seconds: float = 20) -> None:
    """What beat does each second, a little faster."""

    def tick() -> bool:
        reconcile.reconcile()
        return condition()

    wait_until(tick, seconds, every=0.2)


def test_the_runs_of_a_killed_worker_move_at_once_and_those_of_a_sleeping_one_do_not(
    world: World, patient: Worker, worker_env: dict[str, str]
) -> None:
    run = world.start(WAITS)
    wait_until(effects_file().with_name("waiting").exists, 20, "the tool works")
    name = RunLease.objects.get(run=run).worker
    row = WorkerRow.objects.get(name=name)
    assert (row.stopped_at, row.missing_since) == (None, None)

    patient.signal(signal.SIGSTOP)
    until = time.monotonic() + 2 * liveness.LOOK_SECONDS
    wait_until(lambda: reconcile.reconcile() or time.monotonic() > until)
    assert fresh(run).status == "running", "a process that sleeps keeps its session"

    patient.kill()
    killed = time.monotonic()
    ticks_until(lambda: fresh(run).status == "pending")
    assert time.monotonic() - killed < 3
    assert statuses(run)[-1] == ("running", "pending", "lease_lost")


def test_a_worker_that_loses_only_its_session_takes_the_lock_again_and_keeps_its_runs(
    world: World, patient: Worker
) -> None:
    run = world.start(WAITS)
    wait_until(effects_file().with_name("waiting").exists, 20, "the tool works")
    before = fresh(run).lease_epoch
    end_sessions_of_locks()
    wait_until(lambda: WorkerRow.objects.filter(missing_since=None).exists() and lock_is_held())
    reconcile.reconcile()
    assert (fresh(run).status, fresh(run).lease_epoch) == ("running", before)
    patient.process.terminate()
    patient.process.wait(15)
    assert WorkerRow.objects.get().stopped_at is not None
    ticks_until(lambda: fresh(run).status == "pending")
    assert not lock_is_held()


def test_nothing_is_claimed_without_the_lock(world: World) -> None:
    alive = Liveness("w", 1)
    assert not alive.wait(0)
    alive.start()
    assert alive.wait(10)
    end_sessions_of_locks()
    wait_until(lambda: not alive.wait(0), 10, "it notices")
    assert alive.wait(10), "and takes it again"
    alive.close()
    assert not alive.wait(0)


def test_a_lock_counts_as_lost_on_the_second_look_and_a_stopped_worker_at_once(
    world: World,
) -> None:
    row = WorkerRow.objects.create(name="gone", slots=1)
    assert transitions.claim("gone", world.start([{"text": "ok"}]).id)
    assert liveness.dead_workers() == [], "found free once only"
    row.refresh_from_db()
    assert row.missing_since is not None
    WorkerRow.objects.update(missing_since=row.missing_since - dt.timedelta(seconds=5))
    assert liveness.dead_workers() == ["gone"]
    WorkerRow.objects.update(missing_since=None, stopped_at=row.started_at)
    assert liveness.dead_workers() == ["gone"]

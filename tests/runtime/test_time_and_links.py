"""Everything has an end, in order (case D1); and a lost or shared connection costs no run (case E5)."""

from __future__ import annotations

import datetime as dt
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from celery import current_app
from django.db import connection
from django.db.models.functions import Now

from runtime_core import commands, transitions
from runtime_core.loop.drive import advance
from runtime_core.models import Run
from runtime_core.scheduling import reconcile
from tests.runtime.test_children import family, supervisor, worker_agent
from tests.runtime.tools import effects_file
from tests.runtime.world import (
    World,
    actor,
    call,
    calls,
    drive,
    events,
    fresh,
    statuses,
    texts,
    wait_until,
)


def test_a_deadline_stops_the_work_and_only_then_the_run_is_timed_out(world: World) -> None:
    turns = [{"calls": [call("wait_for_stop")]}, {"text": "after all"}]
    run = world.start(turns, limits={"deadline_s": 600})
    pool, done = in_background(run)
    wait_until(effects_file().with_name("waiting").exists, 20, "the tool works")
    is_late(run)
    done.result(30)
    pool.shutdown()
    run = fresh(run)
    assert run.status == "timed_out" and run.error and run.error["code"] == "deadline"
    assert "600 s" in run.error["message"]
    assert [c.status for c in calls(run)] == ["cancelled"]
    order = [e.type for e in events(run)]
    assert order.index("tool_call_result") < len(order) - 1 and order[-1] == "done"
    effects_file().with_name("waiting").unlink()

    commands.retry_run(actor(world.alice), run)
    run = drive(run)
    assert (run.status, run.attempt, run.output) == ("completed", 2, "after all")


def is_late(run: Run) -> None:
    """Its deadline is over now: the machine may be slow, so no test waits for it."""
    Run.objects.filter(id=run.id).update(deadline_at=Now() - dt.timedelta(seconds=1))


def in_background(run: Run) -> tuple[ThreadPoolExecutor, Any]:
    """Drive the run on a thread of its own."""
    pool = ThreadPoolExecutor(1)

    def body() -> None:
        try:
            advance("background", run.id)
        finally:
            connection.close()

    return pool, pool.submit(body)


def test_a_deadline_stops_children_first_wherever_they_are(world: World) -> None:
    worker_agent(world)
    run = supervisor(world, "1", "2", beside=[call("wait_for_stop")], tools=["wait_for_stop"],
                     limits={"deadline_s": 600})  # fmt: skip
    pool, done = in_background(run)
    wait_until(effects_file().with_name("waiting").exists, 20, "its own tool works")
    held_child, other = family(run)
    held = transitions.claim("elsewhere", held_child.id)
    assert held
    is_late(run)
    done.result(30)
    pool.shutdown()

    assert [fresh(r).status for r in (run, held_child, other)] == [
        "waiting",
        "running",
        "cancelled",
    ]
    assert statuses(run)[-1][2] == "stopping", "not timed out while one of its children works"
    reconcile.reconcile()
    assert fresh(run).status == "waiting"
    transitions.release(held[0])
    reconcile.reconcile()
    reconcile.reconcile()
    assert [fresh(r).status for r in (run, held_child)] == ["timed_out", "cancelled"]


def others() -> int:
    """End every other session of the test database; how many there were."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid() "
            "AND backend_type = 'client backend'"
        )
        return int(cursor.fetchone()[0])


def idle_in_transaction() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid() AND state LIKE 'idle in transaction%%' "
            "AND clock_timestamp() - state_change > interval '0.2 s'"
        )
        return int(cursor.fetchone()[0])


def test_e5_every_session_is_ended_in_the_middle_of_a_stream_and_while_nothing_runs(
    world: World,
) -> None:
    said = "word " * 150
    run = world.start([{"text": said}], chunk_ms=20)
    pool, done = in_background(run)
    looked = 0
    for part in (20, 300):
        wait_until(lambda part=part: sum(map(len, texts(run).values())) > part, 20, "some text")
        assert idle_in_transaction() == 0, "a stream holds no transaction"
        looked += others()
    done.result(50)
    assert looked >= 2
    assert (fresh(run).status, fresh(run).output) == ("completed", said)
    assert list(texts(run).values())[-1] == said
    again = world.start([{"text": "fine"}])
    others()
    done = pool.submit(lambda: (advance("background", again.id), connection.close()))
    done.result(30)
    pool.shutdown()
    assert fresh(again).status == "completed"


def test_e5_workers_do_not_fork_and_look_whether_their_connections_live() -> None:
    assert current_app.conf.worker_pool == "threads", "a forked child would share its parent's"
    assert connection.settings_dict["CONN_HEALTH_CHECKS"] is True

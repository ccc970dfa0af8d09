"""The queries that judge a fault are right themselves: silent on whole runs, loud on each that is broken by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection

from runtime_core import commands, transitions
from runtime_core.models import Run
from tests.faults.invariants import QUERIES, violations
from tests.runtime.world import (
    World,
    actor,
    call,
    decide_on,
    drive,
    expire_lease,
    open_interrupts,
)

TURNS = [
    {"text": "A note.", "calls": [call("note", text="n")]},
    {"text": "The book.", "calls": [call("ledger_append", text="p")]},
    {"text": "Done."},
]


def finished(world: World) -> Run:
    run = drive(world.start(TURNS))
    decide_on(open_interrupts(run)[0], world.bob)
    return drive(run)


def asking(world: World) -> Run:
    return drive(world.start(TURNS))


def held(world: World) -> Run:
    run = world.start(TURNS)
    assert transitions.claim("me", run.id)
    return run


def test_whole_runs_break_nothing_whatever_they_went_through(world: World) -> None:
    lost = held(world)
    expire_lease(lost)
    cancelled = asking(world)
    commands.cancel_run(actor(world.alice), cancelled)
    paused = world.start(TURNS)
    commands.pause_run(actor(world.alice), paused)
    commands.resume_run(actor(world.alice), paused)
    refused = asking(world)
    decide_on(open_interrupts(refused)[0], world.bob, "reject", reason="no")
    drive(refused)
    failed = drive(world.start([{"error": "unavailable"}] * 9, limits={"max_steps": 1}))
    runs = [
        finished(world),
        asking(world),
        held(world),
        drive(lost),
        cancelled,
        paused,
        refused,
        failed,
    ]
    assert violations([run.id for run in runs]) == []


# Tables whose triggers would refuse a breach.
GUARDED = ("message", "audit_entry", "decision")
BREACHES: list[tuple[str, Callable[[World], Run], str]] = [
    ("1 the status", finished, "UPDATE run SET status = 'failed' WHERE id = %s"),
    (
        "1 the told moves",
        finished,
        'UPDATE event SET data = data || \'{"from": "paused"}\' '
        "WHERE run_id = %s AND type = 'run_status' AND seq > 1",
    ),
    (
        "2 the run has changed",
        finished,
        "UPDATE run SET lease_epoch = lease_epoch + 1 WHERE id = %s",
    ),
    ("2 a run is running", held, "DELETE FROM run_lease WHERE run_id = %s"),
    ("3 a told checkpoint", finished, "DELETE FROM checkpoint WHERE run_id = %s"),
    ("3 a stored step", finished, "UPDATE run SET steps = steps + 1 WHERE id = %s"),
    ("3 a told result", finished, "UPDATE tool_call SET status = 'failed' WHERE run_id = %s"),
    (
        "3 a result was told",
        finished,
        "UPDATE event SET type = 'tool_call_result', "
        "data = data || '{\"status\": \"succeeded\"}' WHERE run_id = %s AND type = 'tool_call_start'",
    ),
    (
        "3 the messages",
        finished,
        "UPDATE message SET position = position + 50 WHERE run_id = %s "
        "AND position = (SELECT max(position) FROM message m WHERE m.thread_id = message.thread_id)",
    ),
    (
        "4 a call is executing",
        finished,
        "UPDATE tool_call SET status = 'executing' WHERE run_id = %s",
    ),
    ("4 two calls", finished, "UPDATE tool_call SET status = 'executing' WHERE run_id = %s"),
    ("6 a run waits", asking, "DELETE FROM interrupt WHERE run_id = %s"),
    ("6 a question is open", asking, "UPDATE run SET status = 'pending' WHERE id = %s"),
    ("6 a lease is held", held, "UPDATE run SET status = 'pending' WHERE id = %s"),
    (
        "7 a settled",
        finished,
        "DELETE FROM decision WHERE interrupt_id IN (SELECT id FROM interrupt WHERE run_id = %s)",
    ),
    ("7 more resumes", finished, "UPDATE interrupt SET status = 'withdrawn' WHERE run_id = %s"),
    (
        "8 a call that needed",
        finished,
        "UPDATE interrupt SET status = 'rejected' WHERE run_id = %s",
    ),
    ("9 the events", finished, "DELETE FROM event WHERE run_id = %s AND seq = 4"),
    (
        "9 the text",
        finished,
        "UPDATE event SET data = data || '{\"offset\": 1}' "
        "WHERE run_id = %s AND type = 'text_delta'",
    ),
    (
        "9 a step was",
        finished,
        "UPDATE event SET data = data || '{\"index\": 0}' "
        "WHERE run_id = %s AND type = 'step_start'",
    ),
    (
        "12 the end",
        finished,
        "UPDATE event SET type = 'progress' WHERE run_id = %s AND type = 'done'",
    ),
    (
        "14 the audit has not each question",
        asking,
        "UPDATE interrupt SET id = gen_random_uuid() WHERE run_id = %s",
    ),
    (
        "14 the audit has not each answer",
        asking,
        "UPDATE interrupt SET status = 'expired', decided_at = now() WHERE run_id = %s",
    ),
    (
        "14 the audit has not each end",
        finished,
        'UPDATE event SET data = data || \'{"to": "failed"}\' WHERE run_id = %s AND seq = 1',
    ),
]


def test_each_breach_is_seen_by_its_own_query(world: World) -> None:
    by_maker: dict[Callable[[World], Run], Run] = {}
    for name, make, breach in BREACHES:
        run = by_maker[make] if make in by_maker else by_maker.setdefault(make, make(world))
        with connection.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SET CONSTRAINTS ALL DEFERRED")
            for table in GUARDED:
                cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
            cursor.execute(breach, [run.id])
            found = violations([run.id])
            cursor.execute("ROLLBACK")
        assert [v for v in found if v.startswith(name)], f"{name}: {found}"
    assert {q for q in QUERIES if not any(q.startswith(name) for name, _, _ in BREACHES)} == set()


pytestmark = pytest.mark.faults

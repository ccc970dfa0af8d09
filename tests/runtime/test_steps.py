"""What a step costs, in which order it is written, what it may take, and what of it may be seen."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runtime_core import commands, decisions, failpoints, ports
from runtime_core.errors import Backpressure, ThreadBusy
from runtime_core.limits import RuntimeLimits
from runtime_core.loop.control import watch
from runtime_core.loop.drive import advance
from runtime_core.models import (
    Checkpoint,
    Event,
    Interrupt,
    Message,
    ProjectQueue,
    Run,
    RunLease,
    Step,
    ToolCall,
)
from runtime_core.scheduling import queue, reconcile
from runtime_core.tools import runner
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
    texts,
)

HOUR = dt.timedelta(hours=1)
SECRET = "ghp_" + "0123456789abcdefABCDEF0123456789abcd"
PAY = [{"calls": [call("ledger_append", text="pay")]}, {"text": "Paid."}]


def test_a_turn_of_model_and_tool_takes_two_commits(world: World) -> None:
    turns = [{"calls": [call("look")]} for _ in range(5)] + [{"text": "end"}]
    run = world.start(turns)
    trace: list[str] = []
    failpoints.arm(-1, "", trace)
    try:
        run = drive(run)
    finally:
        failpoints.disarm()
    assert run.status == "completed"
    assert trace.count("commit.before") == 2 * 5 + 1
    assert trace.count("append.before") <= 2


def test_the_intent_is_stored_before_the_tool_is_touched(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, str, str]] = []
    real = runner.run

    def looked_at(tool: Any, args: Any, ctx: Any, *more: Any) -> Any:
        row = ToolCall.objects.get(run_id=ctx.run_id, call_id=ctx.call_id)
        seen.append((row.status, row.idempotency_key, ctx.idempotency_key))
        return real(tool, args, ctx, *more)

    monkeypatch.setattr(runner, "run", looked_at)
    run = drive(
        world.start(
            [{"calls": [call("note", text="n"), call("ledger_append", text="a")]}, {"text": "ok"}]
        )
    )
    decide_on(open_interrupts(run)[0], world.bob)
    run = drive(run)
    assert run.status == "completed"
    assert [status for status, *_ in seen] == ["executing", "executing"]
    assert all(stored == given for _, stored, given in seen)


def test_nothing_is_held_while_a_person_thinks(world: World) -> None:
    run = drive(world.start(PAY))
    assert run.status == "interrupted"
    assert not RunLease.objects.filter(run=run).exists()
    assert run.id not in watch._holds
    last = [e.type for e in events(run)][-3:]
    assert last == ["checkpoint", "interrupt", "run_status"]
    assert Checkpoint.objects.filter(run=run).exists()
    assert reconcile.reconcile() == 0 and reconcile.dispatch() == 0
    assert fresh(run).version == run.version


def test_a_step_costs_the_same_however_long_the_run_is(world: World) -> None:
    turns = [
        {"text": "I look again.", "calls": [call("look", at="the same place")]} for _ in range(40)
    ]
    run = drive(world.start([*turns, {"text": "end"}], limits={"max_steps": 200}))
    assert run.status == "completed"

    def bytes_of(table: str, first: int, last: int) -> int:
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT sum(octet_length(x::text)) FROM {table} x "  # noqa: S608
                "WHERE run_id = %s AND step BETWEEN %s AND %s",
                [run.id, first, last],
            )
            return int(cursor.fetchone()[0])

    for table in ("checkpoint", "message", "event", "tool_call"):
        early, late = bytes_of(table, 10, 29), bytes_of(table, 60, 79)
        assert abs(late - early) < early * 0.1, table
    assert Message.objects.filter(run=run).count() == 1 + 2 * 40 + 1
    assert Checkpoint.objects.filter(run=run).count() == Step.objects.filter(run=run).count() == 81


def test_a_run_past_its_deadline_is_stopped_wherever_it_is(world: World) -> None:
    run = world.start([{"text": "word " * 4_000}], chunk_ms=20, limits={"deadline_s": 1})
    run = drive(run)
    assert run.status == "timed_out"
    assert statuses(run)[-1] == ("running", "timed_out", "deadline")
    assert "".join(texts(run).values())

    waiting = world.start([{"text": "x"}])
    Run.objects.filter(id=waiting.id).update(deadline_at="2020-01-01T00:00Z")
    assert reconcile.reconcile() == 1
    assert fresh(waiting).status == "timed_out"


def test_a8_what_nobody_decided_is_expired_and_not_executed(world: World) -> None:
    run = drive(world.start(PAY))
    [interrupt] = open_interrupts(run)
    assert interrupt.expires_at > interrupt.created_at
    assert decisions.expire_due() == 0
    Interrupt.objects.filter(id=interrupt.id).update(expires_at="2020-01-01T00:00Z")
    assert decisions.expire_due() == 1
    assert decisions.expire_due() == 0
    run = drive(run)
    assert run.status == "completed"
    assert effects() == []
    interrupt.refresh_from_db()
    assert (interrupt.status, interrupt.decided_by) == ("expired", None)
    assert ("interrupted", "pending", "expired") in statuses(run)


def test_every_bound_is_a_number_that_ends_something() -> None:
    bounds = RuntimeLimits()
    for name in RuntimeLimits.__dataclass_fields__:
        assert getattr(bounds, name) > 0, name
    assert bounds.heartbeat_seconds * 2 < bounds.self_fence_seconds < bounds.lease_seconds


def test_a_queue_that_is_full_refuses_and_says_when_to_come_back(world: World) -> None:
    ProjectQueue.objects.create(project=world.project, most=2)
    agent = world.agent([{"text": "x"}], name="many")
    first, _ = world.run_of(agent), world.run_of(agent)
    with pytest.raises(Backpressure) as refused:
        world.run_of(agent)
    assert refused.value.data["retry_after"] > 0
    assert Run.objects.count() == 2
    queue.count()
    ProjectQueue.objects.update(counted_at=ProjectQueue.objects.get().counted_at + HOUR)
    with pytest.raises(Backpressure):
        world.run_of(agent)  # the count alone
    drive(first)
    world.run_of(agent)  # what was counted has gone on: only the queue itself refuses anybody
    ProjectQueue.objects.update(queued=0)
    with CaptureQueriesContext(connection) as asked:
        queue.refuse_when_full(world.project.id)
    assert len(asked) == 1, "where there is room, nothing is counted but what is new"


def test_b7_a_thread_has_one_run_at_a_time(world: World) -> None:
    first = world.start([{"text": "x"}])
    with pytest.raises(ThreadBusy):
        world.start([{"text": "y"}], thread_id=first.thread_id)
    drive(first)
    assert drive(world.start([{"text": "y"}], thread_id=first.thread_id)).status == "completed"


def test_h2_no_secret_leaves_a_run_wherever_it_came_in(world: World) -> None:
    secret_text = {
        "text": f"The key is {SECRET}, keep it.",
        "calls": [
            call("note", text=f"key {SECRET}"),
            call("fail", message=f"bad key {SECRET}"),
            call("look", at=SECRET),
            call("ledger_append", text=f"use {SECRET}"),
        ],
    }
    run = drive(
        world.start(
            [secret_text, {"text": f"Again {SECRET}"}], input=f"my key is {SECRET}", chunk_ms=1
        )
    )
    [interrupt] = open_interrupts(run)
    decide_on(interrupt, world.bob, "reject", reason=f"never use {SECRET}")
    run = drive(run)
    assert run.status == "completed"
    ports.spans().flush()

    with connection.cursor() as cursor:
        seen = {}
        for table in (
            "run",
            "event",
            "interrupt",
            "step",
            "checkpoint",
            "span",
            "span_io",
            "audit_entry",
            "audit_payload",
        ):
            cursor.execute("SELECT to_regclass(%s)", [table])
            if cursor.fetchone()[0]:
                cursor.execute(f"SELECT string_agg(x::text, ' ') FROM {table} x")  # noqa: S608
                seen[table] = cursor.fetchone()[0] or ""
    assert {"run", "event", "interrupt", "span"} <= set(seen)
    for table, text in seen.items():
        assert SECRET not in text and SECRET[4:30] not in text, table
    shown = [[c.args_redacted, c.result_redacted, c.verdict_reason] for c in calls(run)]
    assert SECRET not in json.dumps(shown)
    joined = "".join(texts(run).values())
    assert SECRET not in joined and SECRET[4:20] not in joined
    assert Event.objects.filter(run=run, type="text_delta").exists()


def test_two_workers_at_once_take_different_runs(world: World) -> None:
    from tests.runtime.world import together

    runs = [world.start([{"calls": [call("look")]}, {"text": "x"}]) for _ in range(6)]
    together(*(lambda n=n: [advance(f"w{n}") for _ in range(3)] for n in range(4)))
    while advance("rest"):
        pass
    for run in runs:
        assert fresh(run).status == "completed"
        assert [cause for *_, cause in statuses(run)].count("claim") == 1


def test_a_cancelled_run_cannot_be_set_going_again(world: World) -> None:
    from runtime_core.errors import IllegalTransition

    run = world.start([{"text": "x"}])
    commands.cancel_run(actor(world.alice), run)
    for command in (
        commands.retry_run,
        commands.resume_run,
        commands.pause_run,
        commands.cancel_run,
    ):
        with pytest.raises(IllegalTransition):
            command(actor(world.alice), fresh(run))

"""The broker only hints: what it loses, repeats or sends too early changes nothing; what it carries is ids alone."""

from __future__ import annotations

import inspect
import json
import uuid
from typing import Any

import pytest
import redis
from celery import current_app
from django.conf import settings
from django.db import connection

from runtime_core import broker, commands, tasks
from runtime_core.loop.drive import advance
from runtime_core.scheduling import reconcile, wake
from tests.runtime.tools import effects
from tests.runtime.workers import Worker
from tests.runtime.workers import advance as send_hint
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
    together,
    wait_until,
)
from tests.runtime.zygote import Zygote

PAY = [{"calls": [call("ledger_append", text="pay")]}, {"text": "Paid."}]


@pytest.mark.race
def test_e1_of_five_processes_one_executes(world: World, zygote: Zygote) -> None:
    run = world.start([{"calls": [call("note", text="n")]}, {"text": "ok"}])
    assert zygote.race(run.id, 5) == {"claimed": 1, "refused": 4}
    assert fresh(run).status == "completed"
    assert [cause for *_, cause in statuses(run)].count("claim") == 1
    assert len(effects()) == 1
    assert zygote.race(run.id, 3) == {"claimed": 0, "refused": 3}
    assert len(events(run)) == fresh(run).last_seq


@pytest.mark.race
def test_e1_a_run_that_waits_for_a_person_is_not_taken(world: World, zygote: Zygote) -> None:
    run = drive(world.start(PAY))
    before = fresh(run).version
    assert zygote.race(run.id, 5) == {"claimed": 0, "refused": 5}
    assert (fresh(run).status, fresh(run).version) == ("interrupted", before)


def test_e1_a_hint_for_what_is_not_there_does_nothing(world: World) -> None:
    assert not advance("w", uuid.UUID(int=7))
    for text in ("", "nonsense", "0" * 500, "'; DROP TABLE run; --"):
        tasks.advance(text)


@pytest.mark.faults
def test_e1_repeated_hints_start_one_execution(world: World, worker: Worker) -> None:
    run = world.start(PAY)
    for _ in range(20):
        send_hint(run.id)
    wait_until(lambda: fresh(run).status == "interrupted", 20)
    decide_on(open_interrupts(run)[0], world.bob)
    for _ in range(20):
        send_hint(run.id)
    wait_until(lambda: fresh(run).state.ended, 20)
    for _ in range(5):
        send_hint(run.id)
    assert fresh(run).status == "completed"
    assert effects() == ["pay"]
    assert [cause for *_, cause in statuses(run)].count("claim") == 2


def test_e4_nothing_is_hinted_before_the_commit(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.db import transaction

    sent: list[uuid.UUID] = []
    monkeypatch.setattr(wake, "send", lambda run_id: sent.append(run_id) or True)
    run = drive(world.start(PAY))
    sent.clear()
    with transaction.atomic():
        decide_on(open_interrupts(run)[0], world.bob)
        assert sent == []
    assert sent == [run.id]


def test_e4_a_slow_commit_is_waited_for_and_resumes_once(world: World) -> None:
    run = drive(world.start(PAY))
    [interrupt] = open_interrupts(run)
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION slow_commit() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN PERFORM pg_sleep(1); RETURN NULL; END $$"
        )
        cursor.execute(
            "CREATE CONSTRAINT TRIGGER slow AFTER UPDATE ON interrupt "
            "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow_commit()"
        )
    try:
        outcomes = together(
            lambda: decide_on(interrupt, world.bob),
            lambda: wait_until(lambda: advance("eager", run.id), 15, "it is due", every=0.05),
        )
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TRIGGER slow ON interrupt")
            cursor.execute("DROP FUNCTION slow_commit()")
    assert outcomes[1] is True, outcomes
    assert fresh(run).status == "completed"
    assert effects() == ["pay"]
    assert statuses(run).count(("interrupted", "pending", "decided")) == 1


def test_e4_a_lost_hint_is_found_by_the_next_tick(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[uuid.UUID] = []
    with monkeypatch.context() as patch:
        patch.setattr(wake, "send", lambda run_id: False)
        run = world.start(PAY)
    monkeypatch.setattr(wake, "send", lambda run_id: sent.append(run_id) or True)
    assert reconcile.dispatch() == 1
    assert sent == [run.id]
    drive(run)
    sent.clear()
    assert reconcile.dispatch() == 0, "who waits for a person is not due"


def test_a_broker_that_is_away_refuses_nobody(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any) -> None:
        raise redis.ConnectionError("connection refused")

    monkeypatch.setattr(broker, "_send", away)
    monkeypatch.setattr(broker, "_resting_until", 0.0)
    run = drive(world.start(PAY))
    decide_on(open_interrupts(run)[0], world.bob)
    assert drive(run).status == "completed"
    assert commands.cancel_run(actor(world.alice), world.start(PAY)).status == "cancelled"
    world.start(PAY)
    assert reconcile.dispatch() == 0


def test_h7_tasks_take_ids_only_and_return_nothing() -> None:
    from config import celery  # noqa: F401

    current_app.loader.import_default_modules()
    ours = {n: t for n, t in current_app.tasks.items() if not n.startswith("celery.")}
    assert {
        "runtime_core.advance",
        "runtime_core.dispatch",
        "runtime_core.reconcile",
        "runtime_core.expire",
    } <= set(ours)
    for name, task in ours.items():
        signature = inspect.signature(task.run)
        assert signature.return_annotation in ("None", None), name
        for parameter in signature.parameters.values():
            assert parameter.annotation == "str", name
            assert parameter.name.endswith("_id"), name
    assert settings.CELERY_TASK_IGNORE_RESULT
    assert not settings.CELERY_TASK_STORE_ERRORS_EVEN_IF_IGNORED


@pytest.mark.faults
def test_h7_no_payload_is_in_the_workers_output_or_in_the_broker(
    world: World, worker_env: dict[str, str], broker: redis.Redis
) -> None:
    canaries = {
        name: f"canary-{name}-{uuid.UUID(int=n + 99).hex}"
        for n, name in enumerate(("prompt", "argument", "comment", "error", "text"))
    }
    running = Worker({**worker_env, "LOG_LEVEL": "DEBUG"}, level="DEBUG")
    try:
        running.start()
        run = world.start(
            [
                {
                    "text": canaries["text"],
                    "calls": [
                        call("ledger_append", text=canaries["argument"]),
                        call("fail", message=canaries["error"]),
                    ],
                },
                {"error": {"code": "model_unavailable", "message": "away", "times": 1}},
            ],
            input=canaries["prompt"],
        )
        wait_until(lambda: fresh(run).status == "interrupted", 20)
        decide_on(open_interrupts(run)[0], world.bob, "reject", reason=canaries["comment"])
        wait_until(lambda: fresh(run).state.ended, 30, "it fails or ends")
        send_hint(run.id)
        wait_until(lambda: "runtime_core.advance" in running.output, 20, "the hint is taken")
        seen = running.output + stored(broker)
    finally:
        running.stop()
    assert "runtime_core.advance" in seen
    for name, canary in canaries.items():
        assert canary not in seen, name
    assert calls(run)[1].status == "failed"


def stored(broker: redis.Redis) -> str:
    """All that the broker holds."""
    found = []
    for key in broker.scan_iter():
        kind = broker.type(key).decode()
        value = {
            "list": lambda k: broker.lrange(k, 0, -1),
            "hash": broker.hgetall,
            "zset": lambda k: broker.zrange(k, 0, -1),
            "set": broker.smembers,
            "string": broker.get,
        }[kind](key)
        found.append(f"{key!r} {value!r}")
    return json.dumps(found)

"""What writes do, and that a repeat with the same key does nothing a second time."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections, transaction

from runtime_core import clock, commands
from runtime_core.models import IdempotencyKey, Run, Thread
from tests.api.room import Api, Room, agent, interrupt, make_run, project, tool_call

GOOD = {"agent": "fixer", "input": "Fix it"}


@pytest.fixture
def open_room(transactional_db: None) -> Room:
    """A room whose rows other threads can see."""
    return Room()


def test_it_starts_a_run(room: Room, ana: Api) -> None:
    limits = {"max_steps": 7, "max_tokens": 900, "max_cost_usd": 0.5, "deadline_s": 30}

    status, body = ana.post("/runs", {**GOOD, "limits": limits, "metadata": {"ticket": 5}})

    assert (status, body["status"], body["limits"]) == (201, "pending", limits)
    assert ana.get(f"/runs/{body['id']}")[1]["agent"] == "fixer"
    assert ana.get(f"/runs/{body['id']}/events")[1]["events"][0]["type"] == "run_status"


@pytest.mark.parametrize("text", ["a\x00b", "a\ud800b", "literal \\u0000", "😀" * 100])
def test_odd_characters_in_the_input_are_fine(room: Room, ana: Api, text: str) -> None:
    assert ana.post("/runs", {**GOOD, "input": text})[0] == 201


def test_an_unknown_agent_is_404_and_says_where_to_look(room: Room, ana: Api) -> None:
    status, body = ana.post("/runs", {**GOOD, "agent": "nobody"})

    assert (status, body["code"]) == (404, "not_found")
    assert "/api/v1/agents" in body["detail"]


def test_an_agent_of_several_projects_needs_the_project(room: Room, ana: Api) -> None:
    other = project("other")
    agent(other, "fixer")
    room.ana.memberships.create(project=other, role="operator")

    status, body = ana.post("/runs", GOOD)
    chosen, run = ana.post("/runs", {**GOOD, "project": "other"})

    assert (status, sorted(body["projects"])) == (422, sorted(["other", room.project.slug]))
    assert (chosen, Run.objects.get(id=run["id"]).project) == (201, other)


def test_a_run_can_join_a_thread_but_not_a_busy_or_foreign_one(room: Room, ana: Api) -> None:
    _, thread = ana.post("/threads", {"metadata": {"a": 1}})
    foreign = Thread.objects.create(project=project("elsewhere"), created_by=room.cy)

    first, _ = ana.post("/runs", {**GOOD, "thread_id": thread["id"]})
    second, busy = ana.post("/runs", {**GOOD, "thread_id": thread["id"]})
    third, _ = ana.post("/runs", {**GOOD, "thread_id": str(foreign.id)})

    assert (first, second, busy["code"], third) == (201, 409, "thread_busy", 404)
    assert ana.get(f"/threads/{thread['id']}")[1]["metadata"] == {"a": 1}


def test_cancel_ends_a_run_that_nobody_holds_and_then_is_illegal(room: Room, ana: Api) -> None:
    run = room.run()

    status, body = ana.post(f"/runs/{run.id}/cancel")
    again, problem = ana.post(f"/runs/{run.id}/cancel")

    assert (status, body["status"]) == (202, "cancelled")
    assert (again, problem["code"]) == (409, "illegal_transition")


def test_cancel_withdraws_what_is_open(room: Room, ana: Api) -> None:
    run = room.run("interrupted")
    interrupt(tool_call(run))

    _, body = ana.post(f"/runs/{run.id}/cancel")

    assert (body["status"], body["interrupts"]) == ("cancelled", [])


def test_pause_and_resume_with_more_to_spend(room: Room, ana: Api) -> None:
    run = room.run()

    _, paused = ana.post(f"/runs/{run.id}/pause")
    status, body = ana.post(f"/runs/{run.id}/resume", {"limits": {"max_steps": 99}})

    assert paused["status"] == "paused"
    assert (status, body["status"], body["limits"]["max_steps"]) == (202, "pending", 99)
    assert ana.post(f"/runs/{run.id}/resume")[1]["code"] == "illegal_transition"


def test_a_repeat_with_the_same_key_gets_the_same_answer(room: Room, ana: Api) -> None:
    first = ana.send("/runs", b'{"agent": "fixer", "input": "x"}', Idempotency_Key="k1")
    again = ana.send("/runs", b'{ "input": "x", "agent": "fixer" }', Idempotency_Key="k1")

    assert (again.status_code, again.json()) == (201, first.json())
    assert again["Idempotent-Replayed"] == "true"
    assert Run.objects.count() == 1


def test_the_same_key_for_another_request_is_a_mismatch(room: Room, ana: Api) -> None:
    ana.post("/runs", GOOD, Idempotency_Key="k1")

    for path, body in (("/runs", {**GOOD, "input": "other"}), ("/threads", {})):
        status, problem = ana.post(path, body, Idempotency_Key="k1")
        assert (status, problem["code"]) == (409, "idempotency_mismatch")
    assert Run.objects.count() == 1


def test_keys_of_two_people_do_not_meet(room: Room, ana: Api) -> None:
    room.vi.memberships.create(project=room.project, role="operator")

    assert ana.post("/runs", GOOD, Idempotency_Key="k1")[0] == 201
    assert Api(room.vi).post("/runs", GOOD, Idempotency_Key="k1")[0] == 201
    assert Run.objects.count() == 2


def test_a_refused_write_leaves_its_key_free(room: Room, ana: Api) -> None:
    run = make_run(room.agent, room.ana, "running")

    refused, _ = ana.post(f"/runs/{run.id}/retry", Idempotency_Key="k1")
    Run.objects.filter(id=run.id).update(status="failed", ended_at=run.created_at)
    worked, body = ana.post(f"/runs/{run.id}/retry", Idempotency_Key="k1")

    assert (refused, worked, body["attempt"]) == (409, 202, 2)


@pytest.mark.parametrize("key", ["", "x" * 201, "with blank", "ümlaut"])
def test_a_key_that_cannot_be_kept_is_refused(room: Room, ana: Api, key: str) -> None:
    status, body = ana.post("/runs", GOOD, Idempotency_Key=key)

    assert (status, body["field"]) == (422, "Idempotency-Key")


@pytest.mark.race
def test_duplicates_at_the_same_time_create_one_run(open_room: Room) -> None:
    answers = at_once(12, lambda api: api.post("/runs", GOOD, Idempotency_Key="same"), open_room)

    assert {status for status, _ in answers} == {201}
    assert len({body["id"] for _, body in answers}) == 1
    assert Run.objects.count() == 1


def test_e4_a_failure_after_the_work_leaves_no_run_no_key_and_no_hint(
    open_room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    real = commands.start_run

    def start_then_fail(*args: Any, **kwargs: Any) -> None:
        real(*args, **kwargs)
        raise RuntimeError("power cut")

    monkeypatch.setattr("runtime_core.scheduling.wake.send", lambda run_id: sent.append(run_id))
    monkeypatch.setattr("runtime_core.events.publish._publish", sent.append)
    monkeypatch.setattr(commands, "start_run", start_then_fail)
    ana = Api(open_room.ana)

    failed, _ = ana.post("/runs", GOOD, Idempotency_Key="k1")

    assert failed == 500
    assert (Run.objects.count(), IdempotencyKey.objects.count(), sent) == (0, 0, [])
    monkeypatch.setattr(commands, "start_run", real)
    assert ana.post("/runs", GOOD, Idempotency_Key="k1")[0] == 201
    assert len(sent) == 2


def test_e4_hints_go_out_after_the_commit(open_room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []

    def note(*args: Any) -> None:
        seen.append(transaction.get_connection().in_atomic_block)

    monkeypatch.setattr("runtime_core.scheduling.wake.send", note)
    monkeypatch.setattr("runtime_core.events.publish._publish", note)
    monkeypatch.setattr("runtime_core.loop.control.signal", note)
    ana = Api(open_room.ana)

    _, run = ana.post("/runs", GOOD, Idempotency_Key="k1")
    ana.post(f"/runs/{run['id']}/cancel", Idempotency_Key="k2")

    assert len(seen) >= 3
    assert not any(seen)


def at_once(count: int, act: Any, room: Room) -> list[tuple[int, Any]]:
    """What `act` returns for so many clients that start together."""
    start, answers = threading.Barrier(count), []
    apis = [Api(room.ana) for _ in range(count)]

    def one(api: Api) -> None:
        start.wait()
        answers.append(act(api))
        connections.close_all()

    threads = [threading.Thread(target=one, args=(api,)) for api in apis]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def test_a_threads_metadata_is_stored_and_answered_without_its_secrets(
    room: Room, ana: Api
) -> None:
    secret = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"

    status, made = ana.post("/threads", {"metadata": {"note": f"use {secret}", "ticket": 5}})
    _, read = ana.get(f"/threads/{made['id']}")

    assert (status, read["metadata"]["ticket"]) == (201, 5)
    assert secret not in str([made, read, Thread.objects.get(id=made["id"]).metadata])


def test_a_key_used_in_one_project_gives_nothing_to_a_token_of_another(room: Room) -> None:
    other = project("another")
    agent(other, "fixer")
    room.ana.memberships.create(project=other, role="operator")
    here, there = Api(room.ana, within=room.project), Api(room.ana, within=other)

    status, run = here.post("/runs", GOOD, Idempotency_Key="same")
    refused, problem = there.post("/runs", GOOD, Idempotency_Key="same")

    assert (status, refused, problem["code"]) == (201, 409, "idempotency_mismatch")
    assert run["id"] not in str(problem)


@pytest.mark.parametrize(
    "changes",
    [{"limits": "x"}, {"limits": {"max_steps": 0}}, {"input": 5}, {"agent": "other"}, "x", [1]],
)
def test_a_fork_with_changes_that_mean_nothing_is_refused(
    room: Room, ana: Api, changes: Any
) -> None:
    run = room.run()
    body = {"checkpoint_id": str(run.id), "changes": changes}

    status, problem = ana.post(f"/runs/{run.id}/fork", body)

    assert (status, problem["code"]) == (422, "invalid_input")
    assert problem["detail"].startswith("changes")


def test_force_is_a_word_of_its_own_and_only_for_what_does_not_stop(room: Room, ana: Api) -> None:
    run = room.run()

    early, problem = ana.post(f"/runs/{run.id}/cancel", {"force": True})
    odd, _ = ana.post(f"/runs/{run.id}/cancel", {"force": "yes"})
    Run.objects.filter(id=run.id).update(cancel_requested_at=clock.now() - timedelta(seconds=11))
    status, body = ana.post(f"/runs/{run.id}/cancel", {"force": True})

    assert (early, problem["code"], odd) == (409, "illegal_transition", 422)
    assert (status, body["status"]) == (202, "cancelled")

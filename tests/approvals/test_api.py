"""Interrupts over HTTP: what is given to whom, and that only a well-formed decision counts."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest

from approvals.models import Decision, Viewing
from runtime_core import clock
from runtime_core.ids import new_id
from runtime_core.models import Interrupt, Project
from tests.api.room import Api
from tests.approvals.world import FIXED, World, audited

SECRET_ARGS = {"path": "calc.py", "content": "token = 'hunter2'\n"}
REDACTED_ARGS = {"path": "calc.py", "content": "token = '[REDACTED:secret]'\n"}
KEYS = {
    *("id", "run_id", "kind", "status", "version", "digest", "tool", "args", "schema", "risk"),
    *(
        "allowed_actions",
        "required",
        "decided",
        "decided_by",
        "votes",
        "changes",
        "expires_at",
        "created_at",
    ),
}


@pytest.fixture
def approver(world: World) -> Api:
    return Api(world.approver)


def decision(interrupt: Interrupt, action: str = "approve", **more: Any) -> dict[str, Any]:
    return {"action": action, "version": 1, "digest": interrupt.digest, **more}


def path_of(interrupt: Interrupt) -> str:
    return f"/interrupts/{interrupt.id}"


def decide(api: Api, interrupt: Interrupt, action: str = "approve", **more: Any) -> Any:
    return api.post(f"{path_of(interrupt)}/decisions", decision(interrupt, action, **more))


def test_an_interrupt_has_the_shape_that_is_promised(world: World, approver: Api) -> None:
    interrupt = world.ask()

    status, body = approver.get(path_of(interrupt))

    assert status == 200
    assert set(body) == KEYS
    assert body["tool"] == "write_file"
    assert body["args"] == {"path": "calc.py", "content": FIXED}
    assert body["schema"]["properties"].keys() == {"path", "content"}
    assert body["allowed_actions"] == ["approve", "edit", "respond", "reject"]
    assert (body["required"], body["decided"], body["decided_by"]) == (1, 0, None)
    assert dt.datetime.fromisoformat(body["expires_at"]).tzinfo


def test_the_list_pages_through_all_open_ones_in_order_of_expiry(
    world: World, approver: Api
) -> None:
    asked = [world.ask(expires_in=dt.timedelta(hours=n)) for n in (3, 1, 2)]
    decide(approver, world.ask())

    found, cursor = [], ""
    while cursor is not None:
        query = {"cursor": cursor} if cursor else {}
        _, page = approver.get("/interrupts", status="open", limit=2, **query)
        found += [item["id"] for item in page["items"]]
        cursor = page["next_cursor"]

    assert found == [str(asked[n].id) for n in (1, 2, 0)]


def test_the_list_narrows_to_one_run(world: World, approver: Api) -> None:
    mine, _ = world.ask(), world.ask()

    _, page = approver.get("/interrupts", run_id=str(mine.run_id))

    assert [item["id"] for item in page["items"]] == [str(mine.id)]
    assert set(page["items"][0]) == KEYS


@pytest.mark.parametrize("query", [{"status": "OPEN"}, {"run_id": "x"}, {"cursor": "?"}])
def test_a_filter_that_means_nothing_is_refused(approver: Api, query: dict[str, str]) -> None:
    assert approver.get("/interrupts", **query)[0] == 422


def test_exact_arguments_go_only_to_who_may_decide_and_only_while_it_is_open(
    world: World, approver: Api
) -> None:
    interrupt = world.ask(args=SECRET_ARGS, shown_args=REDACTED_ARGS)

    assert approver.get(path_of(interrupt))[1]["args"] == SECRET_ARGS
    assert Api(world.viewer).get(path_of(interrupt))[1]["args"] == REDACTED_ARGS
    assert approver.get("/interrupts")[1]["items"][0]["args"] == REDACTED_ARGS
    assert decide(approver, interrupt)[1]["args"] == REDACTED_ARGS


def test_seeing_exact_arguments_is_kept_once_a_person_and_version(
    world: World, approver: Api
) -> None:
    interrupt = world.ask()

    for _ in range(3):
        approver.get(path_of(interrupt))
    Api(world.viewer).get(path_of(interrupt))
    Interrupt.objects.filter(id=interrupt.id).update(version=2)
    approver.get(path_of(interrupt))

    assert [entry["version"] for entry in audited("interrupt.viewed")] == [1, 2]
    assert Viewing.objects.count() == 2


@pytest.mark.parametrize(
    ("action", "more", "settled"),
    [
        ("approve", {}, "approved"),
        ("reject", {"reason": "Not needed."}, "rejected"),
        ("reject", {}, "rejected"),
        ("edit", {"args": {"path": "calc.py", "content": "x = 1\n"}}, "edited"),
        ("respond", {"response": "It is done already."}, "answered"),
    ],
)
def test_each_action_settles_the_interrupt(
    world: World, approver: Api, action: str, more: dict[str, Any], settled: str
) -> None:
    interrupt = world.ask()

    status, body = decide(approver, interrupt, action, **more)

    assert (status, body["status"], body["decided"]) == (200, settled, 1)
    assert body["decided_by"] == "approver"
    assert Decision.objects.get().via == "api"


def test_the_same_decision_again_gets_the_same_answer(world: World, approver: Api) -> None:
    interrupt = world.ask()

    first = decide(approver, interrupt)
    again = decide(approver, interrupt)

    assert first == again
    assert Decision.objects.count() == 1


def test_an_idempotency_key_gives_the_answer_again(world: World, approver: Api) -> None:
    interrupt = world.ask()
    where, body = f"{path_of(interrupt)}/decisions", decision(interrupt)

    first = approver.post(where, body, Idempotency_Key="k1")
    again = approver.post(where, body, Idempotency_Key="k1")
    other = approver.post(where, {**body, "action": "reject"}, Idempotency_Key="k1")

    assert first == again
    assert (other[0], other[1]["code"]) == (409, "idempotency_mismatch")


def test_a_refusal_under_an_idempotency_key_is_kept_in_the_audit(world: World) -> None:
    interrupt = world.ask()

    status, _ = Api(world.viewer).post(
        f"{path_of(interrupt)}/decisions", decision(interrupt), Idempotency_Key="k1"
    )

    assert status == 403
    assert len(audited("decision.denied")) == 1


def test_who_comes_second_is_told_by_whom_it_was_decided(world: World, approver: Api) -> None:
    interrupt = world.ask()
    decide(approver, interrupt)

    status, body = decide(Api(world.approver2), interrupt, "reject", reason="No.")

    assert (status, body["code"]) == (409, "already_decided")
    assert (body["current"]["status"], body["current"]["decided_by"]) == ("approved", "approver")
    assert set(body["current"]) == KEYS


def test_a_stale_version_is_told_what_is_there_now(world: World, approver: Api) -> None:
    interrupt = world.ask()
    Interrupt.objects.filter(id=interrupt.id).update(version=2)

    status, body = decide(approver, interrupt)

    assert (status, body["code"]) == (409, "stale_version")
    assert (body["current"]["version"], body["current"]["status"]) == (2, "open")


def test_a_withdrawn_one_conflicts_and_an_expired_one_is_gone(world: World, approver: Api) -> None:
    withdrawn, late = world.ask(), world.ask(expires_in=dt.timedelta(seconds=-1))
    Interrupt.objects.filter(id=withdrawn.id).update(status="withdrawn", decided_at=clock.now())

    status, body = decide(approver, withdrawn)
    assert (status, body["code"], body["current"]["status"]) == (409, "withdrawn", "withdrawn")
    status, body = decide(approver, late)
    assert (status, body["code"]) == (410, "expired")


def test_arguments_that_do_not_fit_the_tool_are_refused(world: World, approver: Api) -> None:
    interrupt = world.ask()

    status, body = decide(approver, interrupt, "edit", args={"path": "calc.py"})

    assert (status, body["code"]) == (422, "invalid_payload")
    assert Interrupt.objects.get(id=interrupt.id).status == "open"


def test_a4_a_stranger_finds_no_interrupt_anywhere(world: World) -> None:
    interrupt = world.ask(args=SECRET_ARGS)
    stranger = Api(world.stranger)

    assert stranger.get("/interrupts")[1] == {"items": [], "next_cursor": None}
    assert stranger.get(path_of(interrupt))[0] == 404
    unknown = stranger.get(f"/interrupts/{new_id()}")
    assert stranger.get(path_of(interrupt)) == unknown
    assert decide(stranger, interrupt)[0] == 404
    assert [entry["actor"] for entry in audited("decision.denied")] == ["stranger"]


def test_a4_who_may_only_see_is_refused_with_the_way_out(world: World) -> None:
    interrupt = world.ask()

    status, body = decide(Api(world.operator), interrupt)

    assert (status, body["code"]) == (403, "not_allowed")
    assert "Ask a project admin" in body["detail"]
    assert Interrupt.objects.get(id=interrupt.id).status == "open"


def test_a_token_of_another_project_sees_nothing(world: World) -> None:
    interrupt = world.ask()
    narrowed = Api(world.approver, Project.objects.create(slug="other", name="Other"))

    assert narrowed.get("/interrupts")[1]["items"] == []
    assert narrowed.get(path_of(interrupt))[0] == 404
    assert decide(narrowed, interrupt)[0] == 404


def malformed() -> list[Any]:
    def body(**changes: Any) -> bytes:
        given = {"action": "approve", "version": 1, "digest": "DIGEST"} | changes
        return json.dumps({key: value for key, value in given.items() if value != "LEAVE"}).encode()

    return [
        b"{}",
        b'{"approved": true}',
        body(action="APPROVE"),
        body(action=" approve"),
        body(action="approve "),
        body(action="approve\u200b"),
        body(action=""),
        body(action=True),
        body(action=1),
        body(action=None),
        body(action=["approve"]),
        body(action={"approve": True}),
        body(action="yes"),
        body(action="LEAVE"),
        body(version="1"),
        body(version=1.0),
        body(version=True),
        body(version=None),
        body(version=0),
        body(version=-1),
        body(version=10**30),
        body(version="LEAVE"),
        body(digest=1),
        body(digest=""),
        body(digest=None),
        body(digest="LEAVE"),
        body(decision="approve"),
        body(extra=1),
        body(args={"path": "x"}),
        body(args="{}"),
        body(args=[]),
        body(response="yes"),
        body(reason=1),
        body(reason="x" * 5_000),
        b'{"action":"approve","action":"reject","version":1,"digest":"DIGEST"}',
        b'{"action":"reject","version":1,"digest":"DIGEST","action":"approve"}',
        b'{"action":"approve","version":NaN,"digest":"DIGEST"}',
        b"null",
        b"true",
        b'"approve"',
        b"approve",
        b"[]",
        b"",
        b"\xff\xfe",
        b"action=approve&version=1&digest=DIGEST",
        body(reason="x" * 2_000_000),
    ]


@pytest.mark.parametrize("body", malformed(), ids=lambda body: str(body[:60]))
def test_a7_malformed_decisions_never_count_as_approval(
    world: World, approver: Api, body: bytes
) -> None:
    interrupt = world.ask()

    raw = body.replace(b"DIGEST", interrupt.digest.encode())
    answer = approver.send(f"{path_of(interrupt)}/decisions", raw)

    assert 400 <= answer.status_code < 500, answer.content
    assert answer["Content-Type"] == "application/problem+json"
    assert Interrupt.objects.get(id=interrupt.id).status == "open"
    assert interrupt.tool_call.status == "awaiting_approval"
    assert not Decision.objects.exists()
    assert not audited("interrupt.decided")


@pytest.mark.parametrize("key", [None, "key-1"])
def test_exact_arguments_in_the_answer_to_a_conflict_are_kept_as_seen(
    world: World, approver: Api, key: str | None
) -> None:
    interrupt = world.ask(args=SECRET_ARGS, shown_args=REDACTED_ARGS)
    headers = {"Idempotency-Key": key} if key else {}
    stale = {**decision(interrupt), "digest": "0" * 64}

    status, body = approver.post(f"{path_of(interrupt)}/decisions", stale, **headers)

    assert (status, body["current"]["args"]) == (409, SECRET_ARGS)
    assert [entry["actor"] for entry in audited("interrupt.viewed")] == ["approver"]

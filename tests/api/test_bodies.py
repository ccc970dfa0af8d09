"""Bodies are read strictly: what could mean two things is refused, and nothing is coerced."""

from __future__ import annotations

import json

import pytest

from runtime_core.models import Run
from tests.api.room import Api, Room

GOOD = {"agent": "fixer", "input": "Fix it"}

BAD_BODIES = {
    "empty": b"",
    "null": b"null",
    "list": b"[]",
    "text": b'"approve"',
    "no json": b"{",
    "not utf-8": b'{"agent": "fixer", "input": "\xff"}',
    "utf-16": json.dumps(GOOD).encode("utf-16"),
    "double key": b'{"agent": "fixer", "input": "a", "input": "b"}',
    "inner double key": b'{"agent": "fixer", "input": "a", "metadata": {"x": 1, "x": 2}}',
    "nan": b'{"agent": "fixer", "input": "a", "limits": {"max_cost_usd": NaN}}',
    "infinity": b'{"agent": "fixer", "input": "a", "metadata": {"x": -Infinity}}',
    "overflow": b'{"agent": "fixer", "input": "a", "metadata": {"x": 1e999}}',
    "long number": b'{"agent": "fixer", "input": "a", "metadata": {"x": ' + b"9" * 5000 + b"}}",
    "deep": b'{"agent": "fixer", "input": "a", "metadata": {"x": '
    + b"[" * 900
    + b"]" * 900
    + b"}}",
    "very deep": b"[" * 300_000,
}

BAD_FIELDS = [
    {"agent": None},
    {"agent": 7},
    {"agent": ""},
    {"input": ""},
    {"input": " \n "},
    {"input": 5},
    {"input": ["a"]},
    {"input": "x" * 200_001},
    {"surprise": True},
    {"limits": {"max_steps": "5"}},
    {"limits": {"max_steps": 5.0}},
    {"limits": {"max_steps": True}},
    {"limits": {"max_steps": 0}},
    {"limits": {"max_steps": 10**30}},
    {"limits": {"max_cost_usd": -1}},
    {"limits": {"max_cost_usd": "1"}},
    {"limits": {"deadline": 5}},
    {"limits": []},
    {"thread_id": "nope"},
    {"thread_id": 5},
    {"metadata": []},
    {"metadata": {"x": "y" * 20_000}},
]


@pytest.mark.parametrize("name", BAD_BODIES)
def test_it_refuses_a_body_with_no_single_meaning(room: Room, ana: Api, name: str) -> None:
    status, body = ana.post("/runs", BAD_BODIES[name])

    assert (status, body["code"]) == (422, "invalid_input")
    assert not Run.objects.exists()


@pytest.mark.parametrize("change", BAD_FIELDS, ids=lambda change: json.dumps(change)[:40])
def test_it_refuses_a_wrong_field_and_names_it(
    room: Room, ana: Api, change: dict[str, object]
) -> None:
    status, body = ana.post("/runs", {**GOOD, **change})

    assert (status, body["code"]) == (422, "invalid_input")
    assert next(iter(change)) in body["detail"]
    assert not Run.objects.exists()


def test_it_refuses_two_megabytes(room: Room, ana: Api) -> None:
    status, body = ana.post("/runs", {**GOOD, "input": "x" * 2_000_000})

    assert (status, body["code"]) == (413, "too_large")


def test_it_refuses_a_form(room: Room, ana: Api) -> None:
    response = ana.client.post(
        "/api/v1/runs",
        "agent=fixer",
        content_type="application/x-www-form-urlencoded",
        headers=ana.headers,
    )

    assert response.status_code == 415
    assert response.json()["code"] == "unsupported_media_type"


@pytest.mark.parametrize(
    "query",
    [
        {"limit": 0},
        {"limit": 100_000},
        {"limit": "x"},
        {"cursor": "?"},
        {"cursor": "Zm9v"},
        {"status": "odd"},
        {"thread_id": "x"},
    ],
)
def test_it_refuses_a_wrong_query(room: Room, ana: Api, query: dict[str, object]) -> None:
    status, body = ana.get("/runs", **query)

    assert (status, body["code"]) == (422, "invalid_input")


@pytest.mark.parametrize("query", [{"after": -1}, {"after": 2**63}, {"after": "x"}, {"limit": 501}])
def test_it_refuses_a_wrong_place_in_the_events(
    room: Room, ana: Api, query: dict[str, object]
) -> None:
    status, body = ana.get(f"/runs/{room.run().id}/events", **query)

    assert (status, body["code"]) == (422, "invalid_input")


def test_a_nul_where_none_can_be_is_refused_not_a_crash(room: Room, ana: Api) -> None:
    listed = ana.get("/runs", agent="a\x00b")
    started = ana.post("/runs", {**GOOD, "agent": "a\x00b"})

    assert [status for status, _ in (listed, started)] == [422, 422]

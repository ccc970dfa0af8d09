"""Every error is a problem document with a stable code, whoever raised it."""

from __future__ import annotations

import pytest
from django.db import OperationalError
from django.test import Client

from runtime_core import commands, queries
from runtime_core.errors import Backpressure, InterlockError
from tests.api.room import Api, Room, parsed


@pytest.mark.parametrize("path", ["/nothing", "/runs/not-a-uuid", "/runs/", "/"])
def test_an_unknown_address_is_a_problem(ana: Api, path: str) -> None:
    status, body = ana.get(path)

    assert (status, body["code"], body["type"]) == (404, "not_found", "about:blank")


def test_a_wrong_method_is_a_problem_that_names_the_right_ones(ana: Api) -> None:
    response = ana.client.delete("/api/v1/runs", headers=ana.headers)

    status, body = parsed(response)
    assert (status, body["code"]) == (405, "method_not_allowed")
    assert "GET" in response["Allow"]


def test_a_foreign_host_is_a_problem(db: None, client: Client) -> None:
    status, body = parsed(client.get("/api/v1/runs", headers={"Host": "evil.example"}))

    assert (status, body["code"]) == (400, "bad_request")


def test_backpressure_says_when_to_come_back(
    room: Room, ana: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object, **kwargs: object) -> None:
        raise Backpressure(retry_after=7)

    monkeypatch.setattr(commands, "start_run", full)

    response = ana.send("/runs", b'{"agent": "fixer", "input": "x"}')

    assert parsed(response)[1]["code"] == "backpressure"
    assert response["Retry-After"] == "7"


def test_a_database_that_is_down_is_a_503(
    room: Room, ana: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*args: object, **kwargs: object) -> None:
        raise OperationalError("connection refused at /secret/socket")

    monkeypatch.setattr(queries, "runs", down)

    response = ana.client.get("/api/v1/runs", headers=ana.headers)

    assert parsed(response)[1]["code"] == "unavailable"
    assert response.status_code == 503
    assert "secret" not in response.content.decode()


@pytest.mark.parametrize("error", [RuntimeError("inner workings"), InterlockError("lost")])
def test_a_crash_is_a_problem_without_a_traceback(
    room: Room, ana: Api, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def crash(*args: object, **kwargs: object) -> None:
        raise error

    monkeypatch.setattr(queries, "runs", crash)

    status, body = ana.get("/runs")

    assert (status, body["code"]) == (500, "internal")
    assert "inner workings" not in body["detail"]


def test_pages_keep_their_own_errors(db: None, client: Client) -> None:
    assert not client.get("/nothing/")["Content-Type"].startswith("application/problem")


def test_the_schema_lists_the_contract(db: None, client: Client) -> None:
    paths = client.get("/api/v1/openapi.json").json()["paths"]

    run = "/api/v1/runs/{run_id}"
    verbs = [f"{run}/{verb}" for verb in ("cancel", "pause", "resume", "retry", "fork")]
    reads = [f"{run}/{what}" for what in ("events", "checkpoints", "tool-calls", "provenance")]
    for path in ("/api/v1/runs", run, *verbs, *reads, "/api/v1/threads", "/api/v1/agents"):
        assert path in paths

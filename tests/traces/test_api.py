"""Traces and audit over the API, inside the caller's projects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from runtime_core.models import ApiToken, Project
from runtime_core.values import Usage
from tests.pages.world import World
from traces import api
from traces.audit import anchors
from traces.audit.chain import GENESIS
from traces.audit.sealer import seal


@pytest.fixture
def world(db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(anchors, "anchor_file", lambda: tmp_path / "anchors")
    yield World()


def get(user: Any, path: str, within: Project | None = None, **query: Any) -> tuple[int, Any]:
    _, token = ApiToken.issue(user, within)
    answer = Client().get(f"/api/v1{path}", query, headers={"Authorization": f"Bearer {token}"})
    return answer.status_code, json.loads(answer.content)


def test_it_gives_a_trace_with_what_went_in_and_out(world: World) -> None:
    run = world.run("completed")
    world.span(run, id=run.id, parent_id=None, kind="run", name="root")
    world.span(run, kind="llm", usage=Usage(10, 5, 7), input={"q": 1}, output="text")

    status, body = get(world.viewer, f"/runs/{run.id}/trace")
    _, listed = get(world.viewer, "/traces")

    root, llm = sorted(body["items"], key=lambda item: item["kind"] != "run")
    assert status == 200
    assert (root["parent_id"], llm["parent_id"]) == (None, str(run.id))
    assert llm["usage"] == {"input_tokens": 10, "output_tokens": 5, "cost_microusd": 7}
    assert (llm["input"], llm["output"]) == ({"q": 1}, "text")
    assert listed["items"][0] | {"created_at": 0, "ended_at": 0} == {
        "run_id": str(run.id), "title": "Fix flaky test", "agent": "code-fixer",
        "status": "completed", "spans": 2, "errors": 0, "tokens": 15, "created_at": 0, "ended_at": 0,
    }  # fmt: skip


def test_it_pages_through_a_trace(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "SPANS_A_PAGE", 2)
    run = world.run()
    made = {str(world.span(run).id) for _ in range(5)}

    seen: list[str] = []
    cursor = ""
    while True:
        _, body = get(world.viewer, f"/runs/{run.id}/trace", cursor=cursor)
        seen += [item["id"] for item in body["items"]]
        cursor = body["next_cursor"]
        if not cursor:
            break

    assert len(seen) == 5
    assert set(seen) == made


def test_a_stranger_gets_nothing(world: World) -> None:
    run = world.run()

    assert get(world.stranger, f"/runs/{run.id}/trace")[0] == 404
    assert get(world.stranger, "/traces")[1]["items"] == []
    assert get(world.stranger, "/audit")[1]["items"] == []
    assert Client().get("/api/v1/audit").status_code == 401


def test_the_audit_can_be_checked_by_whoever_reads_it(world: World) -> None:
    from runtime_core import commands
    from runtime_core.values import Actor

    actor = Actor(world.operator.pk, "ana")
    run = commands.start_run(actor, project=world.project, agent="code-fixer", input="x")
    commands.cancel_run(actor, run)
    seal()

    _, body = get(world.viewer, "/audit", run_id=str(run.id))

    newest, oldest = body["items"][0], body["items"][-1]
    assert oldest["action"] == "run.started"
    assert oldest["prev_hash"] == GENESIS
    assert oldest["actor"] == {"id": world.operator.pk, "name": "ana", "via": "web"}
    assert newest["object"]["id"]
    assert [item["seq"] for item in body["items"]] == sorted(
        (item["seq"] for item in body["items"]), reverse=True
    )
    for newer, older in zip(body["items"], body["items"][1:], strict=False):
        assert newer["prev_hash"] == older["hash"]


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/audit", {"cursor": "x"}), ("/audit", {"run_id": "x"}), ("/audit", {"limit": "0"}),
        ("/traces", {"status": "x"}), ("/traces", {"cursor": "x"}),
        ("/runs/{run}/trace", {"cursor": "x~y"}),
    ],
)  # fmt: skip
def test_nonsense_is_refused_with_its_field(world: World, path: str, query: dict[str, str]) -> None:
    status, body = get(world.viewer, path.format(run=world.run().id), **query)

    assert status == 422
    assert body["code"] == "invalid_input"
    assert next(iter(query)) in body["detail"]

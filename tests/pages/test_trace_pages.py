"""Trace, audit and agents pages: what they show, and that size does not break them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from runtime_core import ports
from runtime_core.ids import new_id
from runtime_core.values import SYSTEM, Audit, Usage
from tests.pages.world import World
from traces.audit import anchors
from traces.audit.sealer import seal
from traces.models import SpanRow

Login = Callable[[Any], Client]


@pytest.fixture(autouse=True)
def anchor_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "anchors.jsonl"
    monkeypatch.setattr(anchors, "anchor_file", lambda: path)
    yield path


def test_it_shows_spans_waits_and_what_is_odd(world: World, as_user: Login) -> None:
    run = world.run("completed", lease_epoch=3)
    world.event(run, "run_status", {"from": None, "to": "pending", "cause": "created"})
    world.span(run, id=run.id, parent_id=None, kind="run", name="the root")
    world.span(run, kind="llm", name="model x", usage=Usage(1_500, 20, 100_000))
    world.span(run, name="lonely", parent_id=new_id())
    world.span(run, name="lost", ended_at=None, status="open", epoch=1)
    broken = world.span(run, name="broken", status="error", attrs={"error": "tool_failed"})
    one = world.ask(run)
    one.status, one.decided_at = "approved", run.ended_at
    one.save()
    client = as_user(world.viewer)

    page = client.get(f"/traces/{run.id}/").content.decode()
    errors = client.get(f"/traces/{run.id}/?errors=1").content.decode()
    panel = client.get(f"/traces/{run.id}/?span={broken.id}").content.decode()

    for text in (
        "the root",
        "model x",
        "lonely",
        "unattached",
        "abandoned",
        "decision on write_file",
    ):
        assert text in page
    assert "1.5k tokens" in page
    assert "broken" in errors
    assert "model x" not in errors
    assert "tool_failed" in panel
    assert client.get(f"/traces/{run.id}/?span={new_id()}").status_code == 404
    assert client.get(f"/traces/{run.id}/?span=x&from=x").status_code == 404


def test_the_panel_shows_what_went_in_and_out_with_its_redactions(
    world: World, as_user: Login
) -> None:
    run = world.run()
    span = world.span(
        run,
        input={"path": "calc.py", "api_key": "sk-proj-4f9Kx2LmQ8vZr7Tn3Wc6Yb1Hd5Gs0Ja"},
        output={"exit_code": 1, "output": "line one\nline two"},
    )

    page = as_user(world.viewer).get(f"/traces/{run.id}/?span={span.id}").content.decode()

    assert "sk-proj" not in page
    assert "data-redacted" in page
    assert "<dt>exit_code</dt><dd>1</dd>" in page
    assert "line one\nline two" in page


def test_h8_twenty_thousand_siblings_open_in_time(world: World, as_user: Login) -> None:
    run = world.run()
    root = world.span(run, id=run.id, parent_id=None, kind="run", name="root")
    SpanRow.objects.bulk_create(
        SpanRow(
            id=new_id(), run_id=run.id, parent_id=root.id, kind="tool", name=f"span {n}",
            status="ok", started_at=root.started_at, ended_at=root.ended_at,
        )
        for n in range(20_000)
    )  # fmt: skip
    client = as_user(world.viewer)
    client.get("/traces/")

    # Of this process: what else the machine is doing does not count.
    began = time.process_time()
    page = client.get(f"/traces/{run.id}/").content.decode()
    took = time.process_time() - began
    last = client.get(f"/traces/{run.id}/?from=20000").content.decode()

    assert took < 3
    assert page.count("data-depth") == 500
    assert 'href="?from=500"' in page
    assert last.count("data-depth") == 1


def test_the_audit_filters_and_says_how_the_chain_stands(world: World, as_user: Login) -> None:
    run = world.run()
    asked = world.ask(run).id
    ports.audit().record(
        [
            Audit("run.started", SYSTEM, "run", str(run.id), world.project.id, run.id, {"a": "b"}),
            Audit("interrupt.decided", SYSTEM, "interrupt", str(asked), world.project.id, run.id),
        ]
    )
    client = as_user(world.viewer)

    before = client.get("/audit/").content.decode()
    seal()
    after = client.get("/audit/").content.decode()
    decided = client.get("/audit/?action=interrupt.decided").content.decode()

    assert "Sealed to entry" not in before
    assert "Sealed to entry 3" in after
    assert decided.split("<tbody")[1].count("<tr>") == 1
    assert "No results" in client.get(f"/audit/?run={new_id()}").content.decode()
    assert client.get("/audit/?run=x&cursor=x&actor=%00&action=x").status_code == 200


def test_the_audit_raises_the_alarm_when_the_anchor_does_not_fit(
    world: World, as_user: Login
) -> None:
    ports.audit().record([Audit("run.started", SYSTEM, "run", "1", world.project.id)])
    seal()
    anchors.append_anchor(1, "f" * 64)

    page = as_user(world.viewer).get("/audit/").content.decode()

    assert "may have been tampered with" in page


def test_agents_show_what_they_may_do(world: World, as_user: Login) -> None:
    page = as_user(world.viewer).get("/agents/").content.decode()

    rows = {name: page.split(f'<th scope="row"><span>{name}')[1].split("</tr>")[0]
            for name in ("read_file", "write_file", "run_command")}  # fmt: skip
    assert ">allow<" in rows["read_file"]
    assert ">ask<" in rows["write_file"]
    assert "allow if" in rows["run_command"]
    assert "New run</a>" not in page.split("<main")[1]
    assert "/runs/new/?agent=code-fixer" in as_user(world.operator).get("/agents/").content.decode()

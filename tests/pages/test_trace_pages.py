"""Trace, audit and agents pages: what they show, and that size does not break them."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from runtime_core import ports, tracing
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
    SpanRow.objects.filter(run_id=run.id, name="span 9999").update(status="error")
    broken = client.get(f"/traces/{run.id}/").content.decode()
    whole = client.get(f"/traces/{run.id}/?siblings=all").content.decode()
    last = client.get(f"/traces/{run.id}/?siblings=all&from=20000").content.decode()

    assert took < 3
    assert page.count("data-depth") == 1 + 25 + 1 + 10
    assert "19,965 more" in page
    assert "span 9999" in broken, "what failed is never folded away"
    assert "span 9999" not in page
    assert whole.count("data-depth") == 200
    assert 'href="?siblings=all&amp;from=200"' in whole
    assert last.count("data-depth") == 1


def test_a_span_has_a_page_and_a_panel_that_say_who_let_it_happen(
    world: World, as_user: Login
) -> None:
    run = world.run(lease_epoch=2)
    one = world.ask(run)
    root = world.span(run, id=run.id, parent_id=None, kind="run", name="the root")
    tool = world.span(
        run, id=tracing.of_call(one.tool_call_id, 2), epoch=2, name="write_file",
        attrs={"why": "a rule lets it"}, input={"path": "a.py"},
    )  # fmt: skip
    address = f"/traces/{run.id}/spans/{tool.id}/"
    client = as_user(world.viewer)

    page = client.get(address).content.decode()
    panel = client.get(address, headers={"HX-Request": "true"})

    for text in (f"/inbox/{one.id}/", "a rule lets it", "a.py", f"/spans/{root.id}/", "version 1"):
        assert text in page, text
        assert text in panel.content.decode(), text
    assert "<html" in page
    assert "<html" not in panel.content.decode()
    assert "HX-Request" in panel["Vary"]
    assert client.get(f"/traces/{run.id}/spans/{new_id()}/").status_code == 404
    assert as_user(world.stranger).get(address).status_code == 404
    other = world.run()
    assert client.get(f"/traces/{other.id}/spans/{tool.id}/").status_code == 404


def test_a_trace_is_read_as_tree_log_and_json_while_it_goes_on(
    world: World, as_user: Login
) -> None:
    run = world.run("running", ended_at=None)
    world.span(run, id=run.id, parent_id=None, kind="run", name="r", status="error")
    world.span(run, name="second", started_at=run.created_at + dt.timedelta(seconds=50))
    world.span(run, name="first", status="error")
    client = as_user(world.viewer)

    page, log, data = (
        client.get(f"/traces/{run.id}/{view}").content.decode()
        for view in ("", "?view=log", "?view=json&errors=1")
    )

    assert "data-refresh" in page
    assert "this page follows it" in page
    assert "1 with errors" in page, "a run that is tried again is not one that failed"
    assert log.index(">first<") < log.index(">second<")
    assert "&quot;name&quot;: &quot;first&quot;" in data
    assert "second" not in data
    assert "in the queue" not in client.get(f"/traces/{run.id}/?queue=0").content.decode()


def test_traces_are_found_by_title_by_tool_and_by_what_is_in_them(
    world: World, as_user: Login
) -> None:
    mended, asked = world.run(title="Mend the parser"), world.run(title="Ask about it")
    world.span(mended, name="git_commit", status="error")
    world.span(asked, kind="interrupt", name="waiting")
    client = as_user(world.viewer)

    def found(query: str) -> set[str]:
        page = client.get(f"/traces/?{query}").content.decode()
        return {title for title in ("Mend the parser", "Ask about it") if title in page}

    assert found("q=PARSER") == {"Mend the parser"}
    assert found(f"q={asked.id}") == {"Ask about it"}
    assert found("has=errors") == found("tool=git_commit") == {"Mend the parser"}
    assert found("has=people") == {"Ask about it"}
    assert found("q=%00&has=x") == set()
    assert found("has=x&tool=") == {"Mend the parser", "Ask about it"}
    assert 'value="PARSER"' in client.get("/traces/?q=PARSER").content.decode()
    assert found("has=redactions") == set()


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

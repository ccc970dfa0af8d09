"""Texts of models, tools and people stay texts on every page, and no page tells a secret."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from runtime_core import ports
from runtime_core.values import SYSTEM, Audit
from tests.pages.world import World
from traces.views import home

Login = Callable[[Any], Client]
TOKEN = "ghp_" + "a8Kq2Zr7Lw9Xc3Vb5Nm1Tp4Ys6Hd0Gf2Je8u"
ATTACKS = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "[x](javascript:alert(1))",
    '<div hx-post="/approve/1" hx-trigger="load">',
    "{{1234567*7}}",
    '"><svg/onload=alert(1)>',
    "' autofocus onfocus=alert(1) x='",
]


class Elements(HTMLParser):
    """Every element of a page with its attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@pytest.mark.parametrize("text", ATTACKS)
def test_h5_hostile_text_makes_no_element(world: World, as_user: Login, text: str) -> None:
    User.objects.filter(pk=world.operator.pk).update(username=text)
    run = world.run("failed", title=text[:120], input=text, output=text,
                    error={"code": text, "message": text})  # fmt: skip
    call = world.call(run, text[:100], "failed", args_redacted={text: text}, result_redacted=text)
    world.ask(run, tool=text[:100], reason=text)
    for type_, data in (
        ("tool_call_start", {"call_id": text, "tool": text, "args": {text: text * 9}}),
        ("tool_call_result", {"tool": text, "status": text, "result": text * 9}),
        ("text_delta", {"step": 0, "offset": 0, "text": text}),
        ("progress", {"message": text}),
        ("interrupt", {"id": text, "kind": text, "tool": text}),
        ("error", {"code": text, "message": text}),
        ("run_status", {"from": text, "to": text, "cause": text}),
    ):
        world.event(run, type_, data)
    span = world.span(run, name=text, input={text: text}, output=text, attrs={text: text})
    world.make_agent(text[:60], instructions=text, model=text, tools=[text])
    ports.audit().record(
        [Audit("run.started", SYSTEM, text[:40], text, world.project.id, data={text: text})]
    )
    client = as_user(world.viewer)

    for address in (
        "/", "/runs/", f"/runs/?agent={text}", f"/runs/{run.id}/", "/traces/", f"/traces/{run.id}/",
        f"/traces/{run.id}/?span={span.id}", "/audit/", f"/audit/?actor={text}", "/agents/",
    ):  # fmt: skip
        answer = client.get(address)
        page = answer.content.decode()
        assert answer.status_code == 200, address
        assert "script-src 'self'" in answer["Content-Security-Policy"]
        for tag, attributes in Elements(page).found:
            assert not [name for name in attributes if name.startswith("on")], (address, tag)
            assert attributes.get("hx-post") is None
            assert not str(attributes.get("href")).startswith("javascript"), address
            assert not (tag == "script" and not attributes.get("src")), address
            assert tag not in ("img", "iframe", "style"), address
            assert "style" not in attributes, address
        assert "8641969" not in page, address
    assert call.pk


def test_h2_a_page_that_breaks_tells_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError(f"HTTPError for url https://h/?key={TOKEN}") from ValueError(TOKEN)

    monkeypatch.setattr(home.queries, "needs", broken)
    client = Client(raise_request_exception=False)
    client.force_login(world.viewer)

    answer = client.get("/", headers={"User-Agent": TOKEN})

    assert answer.status_code == 500
    assert b"Something broke on our side" in answer.content
    assert TOKEN.encode() not in answer.content
    assert b"RuntimeError" not in answer.content


def test_h7_tasks_take_ids_and_nothing_else() -> None:
    from config.celery import app

    app.loader.import_default_modules()
    ours = {name: task for name, task in app.tasks.items() if not name.startswith("celery.")}

    assert "traces.seal" in ours
    for name, task in ours.items():
        for parameter in inspect.signature(task.run).parameters.values():
            assert parameter.annotation in ("int", "str", int, str), (name, parameter)

"""Chromium on pages without a server: files come from `static/`, sockets from the test."""

from __future__ import annotations

import mimetypes
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.contrib.staticfiles import finders
from django.template import engines
from django.test import RequestFactory
from playwright.sync_api import Browser, Page, Route, sync_playwright

ORIGIN = "http://interlock.test"
CSP = "default-src 'self'; style-src 'self'; connect-src 'self' ws:; base-uri 'none'"

OpenPage = Callable[..., Page]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A browser for one module: tests that use the database must not meet its event loop."""
    installed = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=installed, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Browser) -> Iterator[OpenPage]:
    """Opens a page that extends base.html with `content`; `sockets` maps a path to its handler."""
    contexts = []

    def open_(
        content: str,
        sockets: dict[str, Callable[[Any], None]] | None = None,
        answers: dict[str, Callable[[Route], None]] | None = None,
        title: str = "Sample",
        path: str = "/sample/",
        frozen_clock: bool = False,
        **options: Any,
    ) -> Page:
        context = chromium.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        html = render_page(content, title, path)
        context.route(f"{ORIGIN}/**", lambda route: answer(route, html, path, answers or {}))
        handlers = {"/ws/inbox/": lambda socket: None, **(sockets or {})}
        page.route_web_socket(
            lambda url: urlsplit(url).path in handlers,
            lambda socket: handlers[urlsplit(socket.url).path](socket),
        )
        page.faults = []  # type: ignore[attr-defined]
        page.on("pageerror", lambda error: page.faults.append(str(error)))  # type: ignore[attr-defined]
        page.on(
            "console",
            lambda message: (
                page.faults.append(message.text)  # type: ignore[attr-defined]
                if "Content Security Policy" in message.text
                else None
            ),
        )
        if frozen_clock:
            page.clock.install()
        page.goto(f"{ORIGIN}{path}")
        return page

    yield open_
    for context in contexts:
        context.close()


def render_page(content: str, title: str, path: str) -> str:
    """The HTML of a signed-in page with this content."""
    source = (
        '{% extends "base.html" %}{% load interlock %}'
        f"{{% block title %}}{title}{{% endblock %}}{{% block content %}}{content}{{% endblock %}}"
    )
    user = SimpleNamespace(
        is_authenticated=True,
        is_staff=False,
        get_username=lambda: "ana",
        get_full_name=lambda: "Ana",
    )
    template = engines["django"].from_string(source)
    # Without a request of its own no context processor runs, so no database is asked.
    return str(template.render({"user": user, "request": RequestFactory().get(path)}))


def answer(route: Route, html: str, path: str, answers: dict[str, Callable[[Route], None]]) -> None:
    """Serves the page itself, a static file, or what the test says for this path."""
    wanted = urlsplit(route.request.url).path
    if wanted in answers:
        answers[wanted](route)
    elif wanted == path:
        headers = {"Content-Security-Policy": CSP, "Content-Type": "text/html; charset=utf-8"}
        route.fulfill(body=html, headers=headers)
    elif wanted.startswith(settings.STATIC_URL) and (
        found := finders.find(wanted.removeprefix(settings.STATIC_URL))
    ):
        kind = mimetypes.guess_type(str(found))[0] or "text/plain"
        route.fulfill(body=Path(str(found)).read_bytes(), content_type=kind)
    else:
        route.fulfill(status=404, body="")

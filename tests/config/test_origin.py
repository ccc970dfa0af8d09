"""A websocket handshake with somebody's cookie counts only when it comes from our own page."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest
from django.test import override_settings

from config.origin import OwnOriginOnly, Receive, Scope, Send

COOKIE = (b"cookie", b"sessionid=valid")


def handshake(*headers: tuple[bytes, bytes]) -> tuple[Scope | None, list[MutableMapping[str, Any]]]:
    """What the application behind the guard saw (None: nothing), and what the client was sent."""
    seen: list[Scope] = []
    sent: list[MutableMapping[str, Any]] = []

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope)

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "websocket", "path": "/ws/inbox/", "headers": list(headers)}
    asyncio.run(OwnOriginOnly(application)(scope, receive, send))
    return (seen[0] if seen else None), sent


def from_page(origin: str | None, host: str = "app.test") -> bool:
    headers = [COOKIE, (b"host", host.encode())]
    if origin is not None:
        headers.append((b"origin", origin.encode()))
    return handshake(*headers)[0] is not None


@pytest.mark.parametrize(
    "origin",
    [
        None,
        "null",
        "",
        "https://evil.example",
        "https://app.test.evil.example",
        "https://app.test@evil.example",
        "http://app.test",
        "http://app.test:8443",
        "https://app.test:8443",
        "HTTPS://APP.TEST",
        "https://app.test/",
        "https://app.test https://evil.example",
    ],
)
@override_settings(ALLOWED_HOSTS=["app.test"], HTTPS=True)
def test_j1_a_foreign_origin_is_refused(origin: str | None) -> None:
    assert not from_page(origin)


@override_settings(ALLOWED_HOSTS=["app.test"], HTTPS=True)
def test_j1_only_the_right_origin_opens() -> None:
    assert from_page("https://app.test")
    assert from_page("https://app.test", host="app.test:443")
    assert from_page("https://app.test:8443", host="app.test:8443")


def test_j1_a_local_start_over_plain_http_opens() -> None:
    assert from_page("http://127.0.0.1:8000", host="127.0.0.1:8000")
    assert not from_page("http://127.0.0.1:8001", host="127.0.0.1:8000")


def test_j1_a_host_that_is_not_ours_is_refused_even_when_both_agree() -> None:
    assert not from_page("http://evil.example", host="evil.example")


def test_j1_two_origins_are_none() -> None:
    own = (b"origin", b"http://localhost")

    assert handshake(COOKIE, (b"host", b"localhost"), own, own)[0] is None


def test_j1_a_refusal_closes_before_accepting_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    _, sent = handshake(COOKIE, (b"host", b"localhost"), (b"origin", b"https://evil.example"))

    assert [message["type"] for message in sent] == ["websocket.close"]
    assert "evil.example" in caplog.text


def test_j1_a_bearer_needs_no_origin_and_loses_its_cookie() -> None:
    seen, _ = handshake(COOKIE, (b"host", b"localhost"), (b"authorization", b"Bearer token"))

    assert seen is not None
    assert COOKIE not in seen["headers"]


@override_settings(CSRF_TRUSTED_ORIGINS=["https://portal.example"])
def test_j1_a_trusted_origin_opens() -> None:
    assert from_page("https://portal.example", host="localhost")


def test_a_socket_that_nobody_serves_is_refused() -> None:
    from config.asgi import application

    sent: list[MutableMapping[str, Any]] = []

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "websocket.connect"}

    headers = [(b"host", b"localhost"), (b"origin", b"http://localhost")]
    scope = {"type": "websocket", "path": "/ws/nothing/", "headers": headers}
    asyncio.run(application(scope, receive, send))

    assert [message["type"] for message in sent] == ["websocket.close"]

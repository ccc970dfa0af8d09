"""Outermost on every websocket: a browser's cookie counts only on our own pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import structlog
from django.conf import settings
from django.http.request import split_domain_port, validate_host

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

DEFAULT_PORTS = {"http": ":80", "https": ":443"}
log = structlog.get_logger(__name__)


class OwnOriginOnly:
    """Refuses a handshake unless its Origin is exactly ours: scheme, host and port.

    A request with a bearer token needs none (no page of the web can send that header), but loses
    its cookies, so that nothing falls back on them.
    """

    def __init__(self, application: Application) -> None:
        self.application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers: list[tuple[bytes, bytes]] = list(scope["headers"])
        if _values(headers, b"authorization"):
            without_cookie = [pair for pair in headers if pair[0] != b"cookie"]
            await self.application({**scope, "headers": without_cookie}, receive, send)
        elif is_our_own(headers):
            await self.application(scope, receive, send)
        else:
            origin = _origin_for_log(headers)
            log.warning("websocket refused", path=scope.get("path"), origin=origin)
            await refuse(scope, receive, send)


async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
    """Close a websocket before it is accepted, which a browser sees as a plain 403."""
    await send({"type": "websocket.close", "code": 4403})


def is_our_own(headers: list[tuple[bytes, bytes]]) -> bool:
    """Say whether a handshake comes from a page of ours, or of a trusted origin."""
    origins, hosts = _values(headers, b"origin"), _values(headers, b"host")
    if len(origins) != 1 or len(hosts) != 1:
        return False
    if origins[0] in settings.CSRF_TRUSTED_ORIGINS:
        return True
    host = hosts[0]
    domain, _ = split_domain_port(host)
    if not domain or not validate_host(domain, settings.ALLOWED_HOSTS):
        return False
    scheme = "https" if settings.HTTPS else "http"
    return origins[0] == f"{scheme}://{host.removesuffix(DEFAULT_PORTS[scheme])}"


def _values(headers: list[tuple[bytes, bytes]], name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in headers if key.lower() == name]


def _origin_for_log(headers: list[tuple[bytes, bytes]]) -> str:
    return ", ".join(_values(headers, b"origin"))[:200] or "none"

"""Makes the server wait for slow clients instead of keeping everything it sends to them in memory.

daphne's `send` returns at once and its transport's buffer has no bound. Twisted can say when that buffer is full and
when it is empty again; here `send` waits for that. Behind a server whose `send` waits by itself nothing is done.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from autobahn.exception import Disconnected
from twisted.internet.interfaces import IPushProducer
from zope.interface import implementer  # type: ignore[import-untyped]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
# What is wrapped names its parameters' types in other words.
Application = Callable[..., Awaitable[None]]

# An HTTP client that takes nothing for this long is cut off; it can resume by Last-Event-ID.
HTTP_STALL_S = 60.0


@implementer(IPushProducer)
class Gate:
    """Open while the transport has room."""

    def __init__(self) -> None:
        self._room = asyncio.Event()
        self._room.set()

    async def opened(self) -> None:
        """Return when there is room."""
        await self._room.wait()

    # Twisted's names for "the buffer is full", "it is empty again" and "the connection is gone".
    def pauseProducing(self) -> None:
        self._room.clear()

    def resumeProducing(self) -> None:
        self._room.set()

    def stopProducing(self) -> None:
        self._room.set()


class FlowControl:
    """Outermost around an ASGI application: its `send` waits while the client has not taken what was sent."""

    def __init__(self, application: Application) -> None:
        self.application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        protocol = _daphne_protocol(send)
        if protocol is not None and scope["type"] == "websocket":
            send = _websocket_send(protocol, send)
        elif protocol is not None and scope["type"] == "http":
            send = _http_send(protocol, send)
        await self.application(scope, receive, send)


def _daphne_protocol(send: Send) -> Any:
    # daphne gives each application `partial(server.handle_reply, protocol)`.
    if isinstance(send, functools.partial) and len(send.args) == 1:
        return send.args[0]
    return None


def _websocket_send(protocol: Any, send: Send) -> Send:
    gate = Gate()

    async def patient(message: Message) -> None:
        if message["type"] == "websocket.send":
            await gate.opened()
        try:
            await send(message)
        except Disconnected:
            return  # it left this moment, as the application's next `receive` tells it
        if message["type"] == "websocket.accept":
            # The HTTP channel that the connection began as is still registered there.
            protocol.transport.unregisterProducer()
            protocol.transport.registerProducer(gate, True)

    return patient


def _http_send(protocol: Any, send: Send) -> Send:
    gate = Gate()
    registered = False

    async def patient(message: Message) -> None:
        nonlocal registered
        more = message["type"] == "http.response.body" and message.get("more_body", False)
        if more and not registered and protocol.channel is not None:
            protocol.registerProducer(gate, True)
            registered = True
        if registered and not await _room_in_time(gate):
            protocol.transport.abortConnection()
        if registered and not more:
            protocol.unregisterProducer()
            registered = False
        await send(message)

    return patient


async def _room_in_time(gate: Gate) -> bool:
    try:
        async with asyncio.timeout(HTTP_STALL_S):
            await gate.opened()
    except TimeoutError:
        return False
    return True

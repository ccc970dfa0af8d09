"""Who leaves while something is being sent is no error of the server's."""

from __future__ import annotations

import asyncio
import functools
from typing import Any

from autobahn.exception import Disconnected

from config.flow import FlowControl


async def _send_to_nobody(_protocol: object, _message: object) -> None:
    raise Disconnected("Attempt to send on a closed protocol")


def test_a_message_to_a_socket_that_just_left_is_dropped_without_an_error() -> None:
    told: list[Any] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "websocket.send", "text": "news"})
        told.append(await receive())

    async def receive() -> dict[str, str]:
        return {"type": "websocket.disconnect"}

    # daphne gives each application a partial of this shape.
    send = functools.partial(_send_to_nobody, object())
    asyncio.run(FlowControl(application)({"type": "websocket"}, receive, send))

    assert told == [{"type": "websocket.disconnect"}]

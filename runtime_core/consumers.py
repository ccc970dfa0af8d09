"""Websockets: a base that knows who listens and when to hang up, the JSON events of a run, and the inbox.

Raw ASGI applications, not Channels consumers: those would each join the channel layer, which costs most of a server's
throughput and fails with Valkey. Inbound messages change no state, which goes over HTTP; only the inbox
reads them.

Close codes: 4400 the address is wrong, 4401 not logged in (or no longer), 4403 not allowed (or no longer), 4404 no such
run, 4408 too slow (come back with your last seq), 4503 come back in a moment.
"""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs

from django.http.cookie import parse_cookie

from runtime_core import clock, queries
from runtime_core.callers import Caller, Credentials
from runtime_core.db_threads import in_db_thread
from runtime_core.errors import NotAllowed, NotFound, Unauthenticated
from runtime_core.events.hub import DATABASE_ERRORS, Follower, InboxWatcher, hub
from runtime_core.events.read import Frame
from runtime_core.standing import FRESH_S, CannotTell, Standing

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

HEARTBEAT_S = 15.0
# A client that takes nothing for this long is dropped; below the server's own ping timeout.
STALL_S = 15.0
_SEQ = re.compile("[0-9]{1,18}")

BAD_ADDRESS, NOT_LOGGED_IN, NOT_ALLOWED, NO_SUCH_RUN, TOO_SLOW = 4400, 4401, 4403, 4404, 4408
# 1012 would be the word for it, but the server lets applications send 4000 and up only.
COME_BACK = 4503


class Close(Exception):
    """Ends a socket with a close code."""

    def __init__(self, code: int) -> None:
        self.code = code
        super().__init__(code)


class LiveSocket:
    """One websocket that pushes to one person. A subclass says what they must be allowed, and what is pushed."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self._receive = receive
        self._send = send
        self._sent_at = clock.monotonic()
        self._is_sending = False
        self.standing = Standing(_credentials(scope), self.authorise)

    @classmethod
    def as_asgi(cls) -> Any:  # an ASGI application; path() is typed for views
        """The ASGI application that makes one of these a connection."""

        async def application(scope: Scope, receive: Receive, send: Send) -> None:
            await cls(scope, receive, send)._serve()

        return application

    def authorise(self, caller: Caller) -> None:
        """Raise NotFound or NotAllowed unless the caller may see this; runs in a thread, again and again."""
        raise NotImplementedError

    async def push(self) -> None:
        """Send until there is nothing more to say; runs until the client leaves."""
        raise NotImplementedError

    async def heard(self, text: str) -> None:
        """What the client said: nothing that counts, unless a subclass listens. It changes no state."""

    def heartbeat(self) -> str:
        """What is sent when nothing else was for a while."""
        return json.dumps({"type": "heartbeat", "ts": clock.now().isoformat()})

    async def send(self, text: str) -> None:
        """Send one message, under a standing confirmed a moment ago."""
        if not self.standing.is_fresh:
            await self._confirm()
        # No timer a message: `_wait` looks after one that gets stuck here.
        self._sent_at, self._is_sending = clock.monotonic(), True
        await self._send({"type": "websocket.send", "text": text})
        self._is_sending = False

    async def idle(self) -> None:
        """Call at least every few seconds without news: re-checks the right to listen, and beats."""
        await self._confirm()
        if clock.monotonic() - self._sent_at >= HEARTBEAT_S:
            await self.send(self.heartbeat())

    # ── The connection ──────────────────────────────────────────────────────────────────────────

    async def _serve(self) -> None:
        await self._receive()  # websocket.connect
        await self._send({"type": "websocket.accept"})
        left = asyncio.create_task(self._wait_until_left())
        pushing = asyncio.create_task(self._push_until_closed())
        try:
            code = await self._wait(left, pushing)
        finally:
            for task in (left, pushing):
                task.cancel()
            await asyncio.gather(left, pushing, return_exceptions=True)
        if code is not None:
            await self._send({"type": "websocket.close", "code": code})

    async def _wait(self, left: asyncio.Task[None], pushing: asyncio.Task[int]) -> int | None:
        """The code to close with, or None when the client has left."""
        while not (left.done() or pushing.done()):
            await asyncio.wait(
                {left, pushing}, timeout=STALL_S / 4, return_when=asyncio.FIRST_COMPLETED
            )
            if self._is_sending and clock.monotonic() - self._sent_at > STALL_S:
                return TOO_SLOW
        return pushing.result() if pushing.done() else None

    async def _wait_until_left(self) -> None:
        while (message := await self._receive())["type"] != "websocket.disconnect":
            with suppress(*DATABASE_ERRORS):
                await self.heard(message.get("text") or "")

    async def _push_until_closed(self) -> int:
        try:
            await self._admit()
            await self.push()
        except Close as close:
            return close.code
        except CannotTell:
            return COME_BACK
        return 1000

    async def _admit(self) -> None:
        try:
            await self.standing.confirmed()
        except Unauthenticated:
            raise Close(NOT_LOGGED_IN) from None
        except NotFound:
            raise Close(NO_SUCH_RUN) from None
        except NotAllowed:
            raise Close(NOT_ALLOWED) from None

    async def _confirm(self) -> None:
        try:
            await self.standing.confirmed()
        except Unauthenticated:
            raise Close(NOT_LOGGED_IN) from None
        except (NotFound, NotAllowed):
            # It was there and visible when the socket opened.
            raise Close(NOT_ALLOWED) from None


class RunSocket(LiveSocket):
    """The JSON events of one run after `?after=`, each once and in order, as they come."""

    run_id: uuid.UUID
    cursor: int

    def authorise(self, caller: Caller) -> None:
        queries.run_head(caller.projects(), self.run_id)

    async def push(self) -> None:
        await self.greet()
        with hub().follow(self.run_id, self.cursor) as follower:
            while True:
                await self._push_batch(follower)

    async def greet(self) -> None:
        """What is sent before the first event; nothing, unless a subclass has something to say."""

    async def messages(self, frames: Sequence[Frame]) -> Sequence[str]:
        """The messages for these events; a subclass that renders uses `Frame.rendered` to render once."""
        return [frame.json for frame in frames]

    def heartbeat(self) -> str:
        beat = {"seq": self.cursor, "type": "heartbeat", "ts": clock.now().isoformat()}
        return json.dumps({**beat, "step": None, "data": {}})

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        super().__init__(scope, receive, send)
        self.run_id = scope["url_route"]["kwargs"]["run_id"]
        self._after = parse_qs(scope["query_string"].decode("latin1")).get("after", ["0"])[-1]

    async def _admit(self) -> None:
        if not _SEQ.fullmatch(self._after):
            raise Close(BAD_ADDRESS)
        self.cursor = int(self._after)
        await super()._admit()

    async def _push_batch(self, follower: Follower) -> None:
        frames = await follower.batch(FRESH_S)
        if not frames:
            await self.idle()
            return
        for message in await self.messages(frames):
            await self.send(message)
        self.cursor = frames[-1].seq


class InboxSocket(LiveSocket):
    """How many interrupts are open in the caller's projects, and which: once at the start, then on each change."""

    def authorise(self, caller: Caller) -> None:
        self._caller = caller
        self._projects = frozenset(caller.projects().values_list("id", flat=True))

    async def push(self) -> None:
        told: str | None = None
        while True:
            # The projects are looked up with each confirmation: a new membership counts within seconds.
            projects = self._projects
            with hub().watch_inbox(projects) as watcher:
                told = await self._tell_changes(watcher, told)

    async def message(self) -> str:
        """What is sent on a change; an equal message is not sent twice."""
        summary = await in_db_thread(queries.inbox_summary, self._projects)
        return json.dumps(
            {"type": "inbox", "open": summary.open, "ids": [str(id_) for id_ in summary.ids]}
        )

    async def _tell_changes(self, watcher: InboxWatcher, told: str | None) -> str | None:
        changed = True
        while watcher.projects == self._projects:
            if changed:
                told = await self._tell(told)
            changed = await watcher.changed(FRESH_S)
            await self.idle()
        return told

    async def _tell(self, told: str | None) -> str | None:
        with suppress(*DATABASE_ERRORS):
            message = await self.message()
            if message != told:
                await self.send(message)
                return message
        return told


def _credentials(scope: Scope) -> Credentials:
    headers = {name.lower(): value.decode("latin1") for name, value in scope["headers"]}
    return Credentials.of(headers.get(b"authorization"), parse_cookie(headers.get(b"cookie", "")))

"""The events of a run: as a page of JSON, or as server-sent events that replay and then go on live.

A stream starts behind `Last-Event-ID`, else behind `after`, and ends after the last `done` of a run that has ended. An
`after` that is ahead of a run that goes on waits until the run gets there.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from typing import Annotated

from django.db import connection
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from ninja import Query, Router

from runtime_core import clock, queries
from runtime_core.api.auth import caller, credentials
from runtime_core.callers import Caller, Credentials
from runtime_core.errors import InvalidInput, RequestError
from runtime_core.events import read
from runtime_core.events.hub import hub
from runtime_core.limits import limits
from runtime_core.standing import FRESH_S, CannotTell, Standing
from runtime_core.states import RunStatus

router = Router(tags=["events"])

HEARTBEAT_S = 15.0
MAX_SEQ = 2**63 - 1
# One JSON page; what is over it comes with the next one, from `next_after`.
JSON_CHARACTERS = 8_000_000
SSE = "text/event-stream"

# What keeps servers and proxies between us and the client from holding events back.
_UNBUFFERED = {
    "Cache-Control": "no-cache, no-transform",
    "Content-Encoding": "identity",
    "X-Accel-Buffering": "no",
}
_HELLO = "retry: 1000\n\n"
_BEAT = ": heartbeat\n\n"

Seq = Annotated[int, Query(ge=0, le=MAX_SEQ)]


@router.get("/{uuid:run_id}/events", summary="Events after a sequence number")
def events(
    request: HttpRequest, run_id: uuid.UUID, after: Seq = 0, limit: int | None = None
) -> HttpResponseBase:
    """`{events: [{seq, type, ts, step, data}], next_after}`; with `Accept: text/event-stream` a stream."""
    queries.run_head(caller(request).projects(), run_id)
    if request.get_preferred_type(["application/json", SSE]) == SSE:
        return _stream(request, run_id, _resumed(request, after))
    return _page(run_id, after, limit)


def _page(run_id: uuid.UUID, after: int, limit: int | None) -> HttpResponse:
    size = limits().events_page if limit is None else limit
    if not 1 <= size <= limits().events_page:
        raise InvalidInput(f"limit must be from 1 to {limits().events_page}.", field="limit")
    frames = read.after(run_id, after, size, JSON_CHARACTERS)
    next_after = frames[-1].seq if frames else after
    body = f'{{"events":[{",".join(frame.json for frame in frames)}],"next_after":{next_after}}}'
    return HttpResponse(body, content_type="application/json")


def _resumed(request: HttpRequest, after: int) -> int:
    seen = request.headers.get("Last-Event-ID", "").strip()
    if not seen:
        return after
    if not (seen.isascii() and seen.isdigit() and len(seen) <= 18):
        raise InvalidInput("Last-Event-ID must be a sequence number.", field="Last-Event-ID")
    return int(seen)


def _stream(request: HttpRequest, run_id: uuid.UUID, after: int) -> StreamingHttpResponse:
    watch = _Watch(run_id, credentials(request))
    if not connection.in_atomic_block:
        # This thread is kept for as long as the stream is; its connection must not be.
        connection.close()
    return StreamingHttpResponse(_following(watch, after), content_type=SSE, headers=_UNBUFFERED)


async def _following(watch: _Watch, after: int) -> AsyncIterator[str]:
    yield _HELLO
    sent_at = clock.monotonic()
    with hub().follow(watch.run_id, after) as follower:
        while await watch.allowed() and not watch.over(follower.cursor):
            frames = await follower.batch(FRESH_S)
            if frames and frames[-1].type == "done":
                watch.look_again()
            if not await watch.allowed():
                return
            text = "".join(frame.sse for frame in frames)
            if text or clock.monotonic() - sent_at >= HEARTBEAT_S:
                yield text or _BEAT
                sent_at = clock.monotonic()


class _Watch:
    """Whether the stream may go on, and whether its run has ended: one look at the rows tells both."""

    def __init__(self, run_id: uuid.UUID, given: Credentials) -> None:
        self.run_id = run_id
        self._standing = Standing(given, self._look)
        self._head = (0, RunStatus.PENDING)

    async def allowed(self) -> bool:
        """True if it may be sent now; waits while the database cannot say."""
        try:
            await self._standing.confirmed()
        except (RequestError, CannotTell):
            return False
        return True

    def look_again(self) -> None:
        """Do not rely on what was seen before."""
        self._standing.doubt()

    def over(self, cursor: int) -> bool:
        """True if the run has ended and everything up to `cursor` is all there is."""
        last_seq, status = self._head
        return status.ended and cursor >= last_seq

    def _look(self, who: Caller) -> None:
        self._head = queries.run_head(who.projects(), self.run_id)

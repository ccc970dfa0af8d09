"""The run page's socket: events as rows of HTML, and the page's regions anew when they change."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from django.template.loader import render_to_string

from runtime_core import access, clock, queries
from runtime_core.access import Can
from runtime_core.callers import Caller
from runtime_core.consumers import RunSocket
from runtime_core.db_threads import in_db_thread
from runtime_core.events.hub import DATABASE_ERRORS
from runtime_core.events.read import Frame
from traces.shown import run_regions
from traces.shown.event_rows import row_of

# Text as it streams changes only the answer, which the browser puts together itself.
STREAMED = frozenset({"text_delta", "progress"})
# These change what a person may do, so they are not made to wait for the next turn.
URGENT = frozenset({"run_status", "interrupt", "done", "error"})
REGIONS_EVERY_S = 0.7
GROW_EVERY_S = 8.0


class RunPageSocket(RunSocket):
    """The events of one run as HTML rows, with the regions of its page after each change."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._stale = False
        self._sent_regions_at = 0.0
        self._told: dict[str, str] = {}

    def authorise(self, caller: Caller) -> None:
        """The same people who may open the page; what they may do there is asked each time too."""
        super().authorise(caller)
        self._caller = caller

    async def greet(self) -> None:
        """Say how far the run has come: up to there it is a replay."""
        last_seq, _ = await in_db_thread(queries.run_head, self._caller.projects(), self.run_id)
        now = clock.now().isoformat()
        await self.send(json.dumps({"type": "hello", "seq": last_seq, "server_time": now}))

    async def messages(self, frames: Sequence[Frame]) -> Sequence[str]:
        """A row each, then the regions if they are due."""
        rows = [frame.rendered("page", _event_message) for frame in frames]
        self._stale |= any(frame.type not in STREAMED for frame in frames)
        urgent = any(frame.type in URGENT for frame in frames)
        return [*rows, *await self._due_regions(urgent)]

    async def idle(self) -> None:
        """Send regions that had to wait; bars and meters of a run that goes on grow by themselves."""
        if clock.monotonic() - self._sent_regions_at >= GROW_EVERY_S:
            self._stale = True
        for message in await self._due_regions(urgent=False):
            await self.send(message)
        await super().idle()

    def heartbeat(self) -> str:
        """A frame that says only that somebody is there."""
        return json.dumps({"type": "heartbeat", "ts": clock.now().isoformat()})

    async def _due_regions(self, urgent: bool) -> Sequence[str]:
        rested = clock.monotonic() - self._sent_regions_at >= REGIONS_EVERY_S
        if not self._stale or not (urgent or rested):
            return []
        try:
            made = await in_db_thread(self._render_regions)
        except DATABASE_ERRORS:
            return []  # the next turn tries again
        self._stale = False
        self._sent_regions_at = clock.monotonic()
        changed = {name: html for name, html in made.items() if self._told.get(name) != html}
        self._told |= changed
        return [
            json.dumps({"type": "fragment", "target": name, "html": html})
            for name, html in changed.items()
        ]

    def _render_regions(self) -> dict[str, str]:
        run = queries.run(self._caller.projects(), self.run_id)
        rights: frozenset[Can] = access.allowed(self._caller.user, run.project_id)
        names = [
            name
            for name in run_regions.REGIONS
            # While it is written, the answer belongs to the browser.
            if name != "answer" or run.state.ended
        ]
        return {name: run_regions.render_region(name, run, rights) for name in names}


def _event_message(frame: Frame) -> str:
    event = {"seq": frame.seq, "type": frame.type, "ts": frame.ts.isoformat(), "step": frame.step}
    told = {"type": "event", "seq": frame.seq, "html": _row_html(frame)}
    return json.dumps({**told, "event": {**event, "data": frame.data}})


def _row_html(frame: Frame) -> str | None:
    if frame.type == "text_delta" and frame.data.get("offset", 0):
        return None  # one row a message, not one a piece of it
    return render_to_string("traces/run/_event.html", {"row": row_of(frame)})

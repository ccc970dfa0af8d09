"""The inbox's socket: how many requests wait for this person, which, and who else looks at one. Ids
and names only; rows are fetched with rights.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from approvals import queries
from approvals.teamwork import presence
from approvals.teamwork.presence import Place
from runtime_core import clock
from runtime_core.callers import Caller
from runtime_core.consumers import InboxSocket
from runtime_core.db_threads import in_db_thread

# What a page says is short, and said every ten seconds or when its person turns to something else.
SAID_MAX = 200
SAID_EVERY_S = 0.1


class InboxPageSocket(InboxSocket):
    """`hello` once; `inbox` with the count and ids of what waits for the person, and `presence` with
    who else is where, each on a change.
    """

    _place: Place | None = None
    _caller: Any = None
    _told_presence = "[]"

    async def push(self) -> None:
        hello = {"type": "hello", "server_time": clock.now().isoformat()}
        await self.send(json.dumps(hello))
        try:
            await super().push()
        finally:
            if self._place is not None:
                await in_db_thread(presence.move, self._caller.user, self._place, None)

    async def message(self) -> str:
        return json.dumps(await in_db_thread(_summary, self._caller))

    async def idle(self) -> None:
        await super().idle()
        seen = await in_db_thread(presence.others, self._caller.user, self._projects)
        looking = json.dumps(seen)
        if looking != self._told_presence:
            await self.send(f'{{"type": "presence", "looking": {looking}}}')
            self._told_presence = looking

    async def heard(self, text: str) -> None:
        """Take note of what the person has before them; whatever else is said counts as nothing."""
        if self._caller is None or len(text) > SAID_MAX:
            return
        user, before = self._caller.user, self._place
        bound = self._caller.token_project
        self._place = await in_db_thread(presence.place_of, user, text, bound)
        await in_db_thread(presence.move, user, before, self._place)
        # Whoever talks without end is heard no faster.
        await asyncio.sleep(SAID_EVERY_S)


def _summary(caller: Caller) -> dict[str, Any]:
    # Count and ids from one look at the rows, so that they never disagree; a long inbox is counted apart.
    user, bound = caller.user, caller.token_project
    ids = queries.open_ids(user, bound)
    count = len(ids) if len(ids) < queries.LIST_MAX else queries.open_count(user, bound)
    return {"type": "inbox", "open": count, "ids": ids}

"""The inbox's socket: how many requests wait for this person, and which. Ids only; rows are fetched
with rights.
"""

from __future__ import annotations

import json
from typing import Any

from approvals import queries
from runtime_core import clock
from runtime_core.consumers import InboxSocket
from runtime_core.db_threads import in_db_thread


class InboxPageSocket(InboxSocket):
    """`hello` once, then `inbox` with the count and ids of what waits for the person, on each
    change.
    """

    async def push(self) -> None:
        hello = {"type": "hello", "server_time": clock.now().isoformat()}
        await self.send(json.dumps(hello))
        await super().push()

    async def message(self) -> str:
        return json.dumps(await in_db_thread(_summary, self._caller.user))


def _summary(user: Any) -> dict[str, Any]:
    # Count and ids from one look at the rows, so that they never disagree; a long inbox is counted apart.
    ids = queries.open_ids(user)
    count = len(ids) if len(ids) < queries.LIST_MAX else queries.open_count(user)
    return {"type": "inbox", "open": count, "ids": ids}

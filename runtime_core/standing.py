"""Whether the one at the other end of a stream is still who they were, and may still see what it carries."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from django.db import DatabaseError, InterfaceError

from runtime_core import clock
from runtime_core.callers import Caller, Credentials
from runtime_core.db_threads import in_db_thread

# A stream sends nothing under an answer older than this, and asks again this often while it has nothing to send.
FRESH_S = 2.0
# While the database cannot answer, nothing is sent; after this long the stream is given up.
PATIENCE_S = 30.0
RETRY_S = 0.5


class CannotTell(Exception):
    """The database did not answer in time, so nobody knows whether the stream may go on."""


class Standing:
    """Asks again and again: `may` is called with the caller of the moment and raises if they may not (any more)."""

    def __init__(self, credentials: Credentials, may: Callable[[Caller], None]) -> None:
        self._credentials = credentials
        self._may = may
        self._confirmed_at: float | None = None
        self._doubted = False

    @property
    def is_fresh(self) -> bool:
        """True if an answer of a moment ago still holds."""
        return not self._doubted and self._age() < FRESH_S

    async def confirmed(self) -> None:
        """Return when it may be sent; waits while the database cannot say.

        Raises Unauthenticated, NotFound or NotAllowed, and CannotTell when patience is over.
        """
        while not self.is_fresh:
            try:
                await in_db_thread(self._look)
            except (DatabaseError, InterfaceError) as error:
                if self._age() > PATIENCE_S:
                    raise CannotTell() from error
                await asyncio.sleep(RETRY_S)
            else:
                self._confirmed_at, self._doubted = clock.monotonic(), False

    def doubt(self) -> None:
        """Make the next answer a new one."""
        self._doubted = True

    def _age(self) -> float:
        if self._confirmed_at is None:
            return float("inf")
        return clock.monotonic() - self._confirmed_at

    def _look(self) -> None:
        self._may(self._credentials.caller())

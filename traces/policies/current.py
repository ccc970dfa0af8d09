"""What is in force in this process: at most two seconds old, read by a thread and connection of its own."""

from __future__ import annotations

import asyncio
import logging
import threading

from django.apps import apps
from django.conf import settings
from django.db import connection

from runtime_core import clock
from traces.policies import compiled
from traces.policies.compiled import Snapshot

# Older than this it is read again in the background; older than the next, callers wait for that.
FRESH_SECONDS = 1.0
STALE_SECONDS = 1.9
WAIT_SECONDS = 3.0

logger = logging.getLogger(__name__)


class Current:
    """The snapshot in force, and the thread that keeps it fresh while somebody asks."""

    def __init__(self) -> None:
        self._snapshot = Snapshot()
        self._read_at = float("-inf")
        self._asked = 0
        self._answered = 0
        self._state = threading.Condition()
        self._thread: threading.Thread | None = None

    def snapshot(self) -> Snapshot:
        """The policies in force. Without a database that answers, those known last."""
        age = clock.monotonic() - self._read_at
        if age > FRESH_SECONDS and apps.ready and threading.current_thread() is not self._thread:
            self._refresh(wait=age > STALE_SECONDS and not _on_event_loop())
        return self._snapshot

    def forget(self) -> None:
        """Read anew before the next use: something was changed here."""
        self._read_at = float("-inf")

    def _refresh(self, *, wait: bool) -> None:
        with self._state:
            if self._asked == self._answered:
                self._asked += 1
            mine = self._asked
            self._ensure_thread()
            self._state.notify_all()
            if wait:
                self._state.wait_for(lambda: self._answered >= mine, WAIT_SECONDS)

    def _ensure_thread(self) -> None:
        # After a fork the thread is not there any more, although the object is.
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="redaction", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            with self._state:
                self._state.wait_for(lambda: self._asked > self._answered)
                mine = self._asked
            read = self._read()
            with self._state:
                if read is not None:
                    self._snapshot = read
                # A database that is away is asked again no sooner than one that answers.
                self._read_at = clock.monotonic()
                self._answered = mine
                self._state.notify_all()

    def _read(self) -> Snapshot | None:
        try:
            known = self._snapshot
            return known if compiled.state() == known.state else compiled.load()
        except Exception as error:  # noqa: BLE001 (whatever it is, the rules known last stay in force)
            logger.debug("redaction policies not read: %s", type(error).__name__)
            connection.close()
            return None
        finally:
            # Long-lived processes keep theirs; a command must leave none behind.
            if settings.PART not in ("worker", "beat"):
                connection.close()


def _on_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


current = Current()

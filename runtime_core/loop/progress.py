"""What a tool tells while it runs, on its way to the events: redacted, coalesced and bounded."""

from __future__ import annotations

import contextvars
import threading

from django.db import connection

from runtime_core import ports
from runtime_core.errors import Fenced, InterlockError
from runtime_core.loop.work import Work
from runtime_core.transitions import NewEvent

EVENTS_PER_CALL = 200
BYTES_PER_CALL = 500_000
EVERY_SECONDS = 0.2


class ProgressWriter:
    """Takes messages from any thread without making it wait; one thread of its own writes the latest of them."""

    def __init__(self, work: Work, step: int, tool: str) -> None:
        self._work = work
        self._step = step
        self._withheld = ports.redactor().withholds(tool)
        self._latest: list[tuple[str, float | None]] = []
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self._events = 0
        self._bytes = 0

    def __call__(self, message: str, fraction: float | None) -> None:
        """Take one message; those that come faster than they are written are joined, those beyond the bound dropped."""
        with self._lock:
            if self._withheld or self._events >= EVENTS_PER_CALL or self._bytes >= BYTES_PER_CALL:
                return
            self._bytes += len(message.encode("utf-8", "replace"))
            self._latest.append((message, fraction))
            if self._thread is None:
                # Whose data it is, is known to this thread's context.
                run = contextvars.copy_context().run
                self._thread = threading.Thread(
                    target=run, args=(self._run,), name="interlock-progress", daemon=True
                )
                self._thread.start()

    def close(self) -> None:
        """Write what is left and end; nothing of this call is written afterwards."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            while not self._closed.wait(EVERY_SECONDS):
                self._write()
            self._write()
        except (Fenced, InterlockError):
            pass  # the step's own commit will find out
        finally:
            connection.close()

    def _write(self) -> None:
        with self._lock:
            pending, self._latest = self._latest, []
            self._events += bool(pending)
        if not pending:
            return
        text = ports.redactor().text("".join(message for message, _ in pending))
        data: dict[str, object] = {"message": text[-8_000:]}
        if pending[-1][1] is not None:
            data["fraction"] = pending[-1][1]
        self._work.append([NewEvent("progress", data, self._step)])

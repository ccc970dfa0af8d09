"""The text of a model's answer on its way to the events: redacted as a stream, batched, offsets without gap."""

from __future__ import annotations

from runtime_core import clock, ports
from runtime_core.limits import limits
from runtime_core.loop.work import Work
from runtime_core.sanitize import storable_text
from runtime_core.transitions import NewEvent


class DeltaWriter:
    """Collects one step's text. What it has written and what `finish` returns together are the whole redacted text."""

    def __init__(self, work: Work, step: int) -> None:
        self._work = work
        self._step = step
        self._stream = ports.redactor().stream()
        self._buffer = ""
        self._offset = 0
        self._flushed_at = 0.0
        self.text = ""

    def feed(self, chunk: str, *, last: bool = False) -> None:
        """Take a raw piece; write what is due: at once after a silence, else in batches.

        Where it is the last, the step's own commit is about to write it anyway.
        """
        self._take(self._stream.feed(storable_text(chunk)))
        if last:
            return
        due = clock.monotonic() - self._flushed_at >= limits().delta_flush_seconds
        if self._buffer and (due or len(self._buffer) >= limits().delta_flush_bytes):
            self._work.append([self._event()])
            self._flushed_at = clock.monotonic()

    def finish(self) -> list[NewEvent]:
        """The last event, for the step's own commit; what was held back is in it."""
        self._take(self._stream.end())
        return [self._event()] if self._buffer else []

    def _take(self, text: str) -> None:
        self._buffer += text
        self.text += text

    def _event(self) -> NewEvent:
        data = {"step": self._step, "offset": self._offset, "text": self._buffer}
        self._offset += len(self._buffer)
        self._buffer = ""
        return NewEvent("text_delta", data, self._step)

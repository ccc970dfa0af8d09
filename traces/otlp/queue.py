"""The exporter's queue and thread: it may lose spans, but nobody waits for a receiver."""

from __future__ import annotations

import logging
import threading
import uuid
from collections import deque
from collections.abc import Mapping, Sequence

from django.db import connection
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult

from traces.otlp import rows

PATH = "/v1/traces"
# Ids: what they stand for is in the database.
QUEUE_SPANS = 20_000
BATCH = 200
INTERVAL_SECONDS = 1.0
# A batch that its receiver does not take in this time, tries and pauses together, is let go of.
SEND_SECONDS = 10.0

logger = logging.getLogger(__name__)


class Exporter:
    """Takes ids of stored spans and sends those that have ended; counts what it `sent` and `dropped`."""

    def __init__(
        self, endpoint: str, *, headers: Mapping[str, str] | None = None, content: bool = False
    ) -> None:
        self.sent = 0
        self.dropped = 0
        self._content = content
        address = endpoint.rstrip("/")
        self._receiver = OTLPSpanExporter(
            endpoint=address if address.endswith(PATH) else address + PATH,
            headers=dict(headers or {}),
            timeout=SEND_SECONDS,
        )
        self._queue: deque[uuid.UUID] = deque()
        self._busy = False
        self._flushing = 0
        self._state = threading.Condition()
        self._thread: threading.Thread | None = None

    def offer(self, ids: Sequence[uuid.UUID]) -> None:
        """Take what the queue has room for, and return at once."""
        with self._state:
            room = QUEUE_SPANS - len(self._queue)
            self._queue.extend(ids[:room])
            self.dropped += max(0, len(ids) - room)
            self._ensure_thread()
            self._state.notify_all()

    def flush(self, seconds: float) -> None:
        """Wait until everything offered so far was sent or let go of, but no longer than so."""
        with self._state:
            self._flushing += 1
            self._state.notify_all()
            self._state.wait_for(lambda: not self._queue and not self._busy, seconds)
            self._flushing -= 1

    def _ensure_thread(self) -> None:
        # After a fork the thread is not there any more, although the object is.
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._drain, name="otlp", daemon=True)
            self._thread.start()

    def _drain(self) -> None:
        while True:
            batch = self._take()
            try:
                self._send(batch)
            finally:
                with self._state:
                    self._busy = False
                    self._state.notify_all()

    def _take(self) -> list[uuid.UUID]:
        with self._state:
            self._state.wait_for(lambda: self._queue)
            self._state.wait_for(
                lambda: self._flushing or len(self._queue) >= BATCH, INTERVAL_SECONDS
            )
            self._busy = True
            return [self._queue.popleft() for _ in range(min(BATCH, len(self._queue)))]

    def _send(self, batch: list[uuid.UUID]) -> None:
        try:
            spans = self._read(batch)
            taken = not spans or self._receiver.export(spans) is SpanExportResult.SUCCESS
        except Exception:
            logger.warning("spans to export not read or not sent", exc_info=True)
            self._lose(len(batch))
            return
        if taken:
            self.sent += len(spans)
        else:
            self._lose(len(spans))

    def _read(self, batch: list[uuid.UUID]) -> list[ReadableSpan]:
        try:
            return rows.ended([*dict.fromkeys(batch)], content=self._content)
        finally:
            # None is held while a receiver makes us wait.
            connection.close()

    def _lose(self, count: int) -> None:
        self.dropped += count
        logger.warning("%d spans not exported, %d since the start", count, self.dropped)

"""The sink: a bounded queue and a thread that writes it. It may lose spans, but never waits."""

from __future__ import annotations

import atexit
import logging
import threading
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from django.db import connection

from runtime_core import clock
from runtime_core.values import Json, Span
from traces.spans import table

if TYPE_CHECKING:
    from traces.otlp.queue import Exporter

QUEUE_SPANS = 5_000
QUEUE_BYTES = 32_000_000
BATCH = 200
INTERVAL_SECONDS = 0.2
# A connection that is not needed for so long is given back; making one costs more than a batch.
IDLE_SECONDS = 1.0
FLUSH_SECONDS = 5.0
TRIES = 3
WEIGHED_NODES = 200

logger = logging.getLogger(__name__)


class Sink:
    """Takes spans and writes them from its own thread; counts those it `dropped`."""

    def __init__(self, exporter: Exporter | None = None) -> None:
        self.dropped = 0
        self._exporter = exporter
        self._queue: deque[tuple[int, Span]] = deque()
        self._bytes = 0
        self._busy = False
        self._connected = False
        self._collecting = False
        self._flushing = 0
        self._state = threading.Condition()
        self._thread: threading.Thread | None = None

    def write(self, spans: Sequence[Span]) -> None:
        """Take the spans; drop what the queue has no room for."""
        weighed = [(_weight(span), span) for span in spans]
        with self._state:
            for weight, span in weighed:
                if len(self._queue) >= QUEUE_SPANS or self._bytes + weight > QUEUE_BYTES:
                    self.dropped += 1
                    continue
                self._queue.append((weight, span))
                self._bytes += weight
            self._ensure_thread()
            # Waking a thread that would go on collecting costs each step more than the rest of this.
            if not self._collecting or len(self._queue) >= BATCH:
                self._state.notify_all()

    def flush(self) -> None:
        """Wait until everything taken so far is written and no connection is held, at most five seconds."""
        with self._state:
            self._flushing += 1
            self._state.notify_all()
            self._state.wait_for(self._is_done, FLUSH_SECONDS)
            self._flushing -= 1

    def abandon(self, run_id: uuid.UUID, before_epoch: int) -> None:
        """Close what a lost worker left open; the run's own span and waits for people go on."""
        self.flush()
        self._export(table.abandon(run_id, before_epoch, clock.now()))

    def _ensure_thread(self) -> None:
        # After a fork the thread is not there any more, although the object is.
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._drain, name="spans", daemon=True)
            self._thread.start()
            atexit.unregister(self._finish)
            atexit.register(self._finish)

    def _finish(self) -> None:
        self.flush()
        if self._exporter:
            self._exporter.flush(FLUSH_SECONDS)

    def _export(self, ended: Sequence[uuid.UUID]) -> None:
        if self._exporter and ended:
            self._exporter.offer(ended)

    def _is_done(self) -> bool:
        alive = self._thread is not None and self._thread.is_alive()
        return not self._queue and not self._busy and not (self._connected and alive)

    def _drain(self) -> None:
        while True:
            batch = self._take()
            self._store(batch)
            with self._state:
                self._busy = False
                self._state.notify_all()
                self._collect()

    def _collect(self) -> None:
        """Wait a moment for more: one commit for many steps' spans instead of one each."""
        self._collecting = True
        self._state.wait_for(lambda: self._flushing or len(self._queue) >= BATCH, INTERVAL_SECONDS)
        self._collecting = False

    def _take(self) -> list[Span]:
        with self._state:
            while not self._queue:
                idle = IDLE_SECONDS if self._connected else None
                if not self._state.wait_for(self._is_wanted, idle) or not self._queue:
                    self._disconnect()
            taken = [self._queue.popleft() for _ in range(min(BATCH, len(self._queue)))]
            self._bytes -= sum(weight for weight, _ in taken)
            self._busy = self._connected = True
        return [span for _, span in taken]

    def _is_wanted(self) -> bool:
        return bool(self._queue) or bool(self._flushing and self._connected)

    def _disconnect(self) -> None:
        connection.close()
        self._connected = False
        self._state.notify_all()

    def _store(self, batch: Sequence[Span]) -> None:
        for attempt in range(1, TRIES + 1):
            try:
                table.upsert(batch)
                break
            except Exception:
                logger.warning("spans not written, try %d of %d", attempt, TRIES, exc_info=True)
                connection.close()
                with self._state:
                    self._state.wait(INTERVAL_SECONDS * attempt)
        else:
            self.dropped += len(batch)
            return
        self._export([span.id for span in batch if span.ended_at])


def _weight(span: Span) -> int:
    """About how many bytes a span holds; looks at a bounded number of values."""
    if span.input is None and span.output is None and not span.attrs:
        return 500
    total, todo, seen = 500, [span.input, span.output, span.attrs], 0
    while todo and seen < WEIGHED_NODES:
        total += _own_weight(todo.pop(), todo)
        seen += 1
    return total + 100 * len(todo)


def _own_weight(value: Json, todo: list[Json]) -> int:
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, Mapping):
        todo.extend(value.values())
    elif isinstance(value, list | tuple):
        todo.extend(value)
    return 8

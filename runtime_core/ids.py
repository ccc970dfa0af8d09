"""Identifiers: UUIDv7 (RFC 9562), so that keys sort by creation time and index pages stay warm."""

from __future__ import annotations

import os
import threading
import time
import uuid

_lock = threading.Lock()
_last = 0


_pool = b""


def _random(count: int) -> bytes:
    """Random bytes, drawn from the system many at a time: each draw lets other threads in."""
    global _pool
    if len(_pool) < count:
        _pool = os.urandom(4_096)
    taken, _pool = _pool[:count], _pool[count:]
    return taken


def _forget() -> None:
    """A child must not draw what its parent draws."""
    global _pool
    _pool = b""


os.register_at_fork(after_in_child=_forget)


def new_id() -> uuid.UUID:
    """A new UUIDv7: Unix milliseconds, 12 bits of a millisecond's fraction (method 3 of the RFC), then 62 random bits.

    Later calls of one process give greater ids, even where the clock stands still or steps back a little.
    """
    global _last
    with _lock:
        # 4096 ticks a millisecond.
        ticks = max(time.time_ns() * 4096 // 1_000_000, _last + 1)
        _last = ticks
        random = int.from_bytes(_random(8), "big") & (1 << 62) - 1
    value = (ticks >> 12) << 80 | 0x7 << 76 | (ticks & 0xFFF) << 64 | 0b10 << 62 | random
    return uuid.UUID(int=value)

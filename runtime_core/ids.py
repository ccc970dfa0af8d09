"""Identifiers: UUIDv7 (RFC 9562), so that keys sort by creation time and index pages stay warm."""

from __future__ import annotations

import os
import threading
import time
import uuid

_lock = threading.Lock()
_last = 0


def new_id() -> uuid.UUID:
    """A new UUIDv7: Unix milliseconds, 12 bits of a millisecond's fraction (method 3 of the RFC), then 62 random bits.

    Later calls of one process give greater ids, even where the clock stands still or steps back a little.
    """
    global _last
    with _lock:
        # 4096 ticks a millisecond.
        ticks = max(time.time_ns() * 4096 // 1_000_000, _last + 1)
        _last = ticks
    random = int.from_bytes(os.urandom(8), "big") & (1 << 62) - 1
    value = (ticks >> 12) << 80 | 0x7 << 76 | (ticks & 0xFFF) << 64 | 0b10 << 62 | random
    return uuid.UUID(int=value)

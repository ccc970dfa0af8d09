"""Identifiers: UUIDv7 (RFC 9562), so that keys sort by creation time and index pages stay warm."""

from __future__ import annotations

import os
import time
import uuid


def new_id() -> uuid.UUID:
    """A new UUIDv7: 48 bits of Unix milliseconds, then 74 random bits."""
    millis = time.time_ns() // 1_000_000
    random = int.from_bytes(os.urandom(10), "big")
    value = (millis & (1 << 48) - 1) << 80
    value |= 0x7 << 76 | (random >> 68 & 0xFFF) << 64
    value |= 0b10 << 62 | random & (1 << 62) - 1
    return uuid.UUID(int=value)

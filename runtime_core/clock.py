"""Time, as a value that tests can replace: nothing else in the project reads the system clock."""

from __future__ import annotations

import datetime as dt
import time


def now() -> dt.datetime:
    """The current time, aware, in UTC."""
    return dt.datetime.now(dt.UTC)  # noqa: TID251 - the one place


def monotonic() -> float:
    """Seconds that only go forward; for durations and deadlines inside one process."""
    return time.monotonic()

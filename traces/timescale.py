"""Where a bar begins and how long it is, in percent of the whole time shown."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timescale:
    """The time that a picture covers."""

    start: dt.datetime
    end: dt.datetime

    @classmethod
    def over(
        cls, times: Iterable[tuple[dt.datetime, dt.datetime | None]], now: dt.datetime
    ) -> Timescale:
        """The scale that all of these intervals fit in; those without an end go on until now."""
        pairs = [(start, end or now) for start, end in times]
        start = min((start for start, _ in pairs), default=now)
        end = max((max(pair) for pair in pairs), default=now)
        return cls(start, max(end, start + dt.timedelta(milliseconds=1)))

    def place(self, start: dt.datetime, end: dt.datetime | None) -> tuple[float, float]:
        """Begin and width of a bar, in percent."""
        whole = (self.end - self.start).total_seconds()
        x = 100 * (start - self.start).total_seconds() / whole
        width = 100 * ((end or self.end) - start).total_seconds() / whole
        return min(max(x, 0.0), 100.0), min(max(width, 0.0), 100.0)

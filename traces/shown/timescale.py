"""Where a bar begins and how long it is, in percent of the width.

Hours before a person would squeeze the seconds of work to nothing, so idle time gets at most a part of the width.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections.abc import Iterable, Sequence

IDLE_SHARE = 0.35

Interval = tuple[dt.datetime, dt.datetime | None]


class Timescale:
    """The time that a picture covers, with idle stretches drawn shorter than they were."""

    def __init__(
        self, times: Iterable[Interval], idle: Iterable[Interval], now: dt.datetime
    ) -> None:
        pairs = [(start, end or now) for start, end in times]
        self.start = min((start for start, _ in pairs), default=now)
        end = max((max(pair) for pair in pairs), default=now)
        self.end = max(end, self.start + dt.timedelta(milliseconds=1))
        stretches = _merged([(start, end or now) for start, end in idle], self.start, self.end)
        whole = (self.end - self.start).total_seconds()
        resting = sum((b - a).total_seconds() for a, b in stretches)
        self.is_shortened = resting / whole > IDLE_SHARE and resting < whole
        self._marks = _marks(self.start, self.end, stretches, self._weight(whole, resting))

    def _weight(self, whole: float, resting: float) -> float:
        """How much width a second of idleness gets, where one of work gets 1."""
        if not self.is_shortened:
            return 1.0
        return IDLE_SHARE / (1 - IDLE_SHARE) * (whole - resting) / resting

    def place(self, start: dt.datetime, end: dt.datetime | None) -> tuple[float, float]:
        """Begin and width of a bar, in percent."""
        x, until = self._at(start), self._at(end or self.end)
        return x, max(until - x, 0.0)

    def _at(self, moment: dt.datetime) -> float:
        moment = min(max(moment, self.start), self.end)
        index = max(bisect_right(self._marks, moment, key=lambda mark: mark[0]) - 1, 0)
        at, x, slope = self._marks[index]
        return min(x + (moment - at).total_seconds() * slope, 100.0)


def _merged(
    stretches: list[tuple[dt.datetime, dt.datetime]], start: dt.datetime, end: dt.datetime
) -> list[tuple[dt.datetime, dt.datetime]]:
    merged: list[tuple[dt.datetime, dt.datetime]] = []
    for a, b in sorted(stretches):
        a, b = max(a, start), min(b, end)
        if b <= a:
            continue
        if merged and a <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], b))
        else:
            merged.append((a, b))
    return merged


def _marks(
    start: dt.datetime,
    end: dt.datetime,
    stretches: Sequence[tuple[dt.datetime, dt.datetime]],
    weight: float,
) -> list[tuple[dt.datetime, float, float]]:
    """Corners of the mapping: (moment, its place in percent, percent a second from there on)."""
    pieces: list[tuple[dt.datetime, dt.datetime, float]] = []
    at = start
    for a, b in stretches:
        pieces += [(at, a, 1.0), (a, b, weight)]
        at = b
    pieces.append((at, end, 1.0))
    total = sum((b - a).total_seconds() * w for a, b, w in pieces) or 1.0
    marks: list[tuple[dt.datetime, float, float]] = []
    x = 0.0
    for a, b, w in pieces:
        marks.append((a, x, 100 * w / total))
        x += 100 * (b - a).total_seconds() * w / total
    return marks

"""The floor: how many one-row INSERT commits a second this machine's PostgreSQL does, by pgbench."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from statistics import mean, median

from benchmarks.place import Place
from config.services.folder import Owner
from config.services.postgres import DATABASE, PORT, ROLE, binary

_TABLE = """
CREATE TABLE IF NOT EXISTS floor_event (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n int, body text,
    at timestamptz DEFAULT clock_timestamp())
"""
_SCRIPT = "INSERT INTO floor_event (n, body) VALUES (1, repeat('x', 100));\n"
# Floors this far apart say that a neighbour was at work: the round does not count.
MOST_APART = 2.0


@dataclass(frozen=True)
class Round:
    """One measurement of ours between two of the floor, all in units a second."""

    ours: float
    floor: float
    valid: bool

    @property
    def ratio(self) -> float:
        return self.ours / self.floor


@dataclass(frozen=True)
class Summary:
    """The medians of the valid rounds, or of all where there is no valid one."""

    ours: float
    floor: float
    ratio: float
    noisy: bool


class Floor:
    """Runs pgbench against the measured database."""

    def __init__(self, place: Place, seconds: int) -> None:
        self._seconds = seconds
        self._script = place.stack.folder.root / "floor.sql"
        self._script.write_text(_SCRIPT)
        self._program = binary("pgbench", Owner(os.geteuid(), os.getegid()))
        self._host = str(place.sockets)
        with place.connect() as connection:
            connection.execute(_TABLE)

    def rate(self, clients: int) -> float:
        """Commits a second of so many clients."""
        target = ["-h", self._host, "-p", str(PORT), "-U", ROLE, DATABASE]
        load = ["-c", str(clients), "-j", str(min(clients, 2)), "-T", str(self._seconds)]
        done = subprocess.run(
            [self._program, "-n", "-M", "prepared", "-f", str(self._script), *load, *target],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        found = re.search(r"^tps = ([0-9.]+)", done.stdout, re.M)
        assert found, done.stdout
        return float(found[1])

    def rounds(self, clients: int, count: int, measure: Callable[[], float]) -> Summary:
        """Floor, ours, floor, ours, …, floor; each of ours against the two floors around it."""
        before, done = self.rate(clients), []
        for _ in range(count):
            ours = measure()
            after = self.rate(clients)
            valid = max(before, after) < MOST_APART * min(before, after)
            done.append(Round(ours, mean((before, after)), valid))
            before = after
        counted = [one for one in done if one.valid] or done
        return Summary(
            median(one.ours for one in counted),
            median(one.floor for one in counted),
            median(one.ratio for one in counted),
            noisy=not any(one.valid for one in done),
        )

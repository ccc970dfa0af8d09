"""`python -m benchmarks [section…] [--quick]`: measure, and print one table.

Sections: steps, claims, inbox, resume, queue, cancel, http, fanout, audit, retention, traces, crowd, redaction.
All but the last by default.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks import audit, inbox, keeping, latency, scheduling, steps, traces, web
from benchmarks.floor import Floor
from benchmarks.place import Place, place
from benchmarks.table import Figure, shown

Measured = Callable[[Place, bool], Iterator[Figure]]


def _steps(here: Place, quick: bool) -> Iterator[Figure]:
    floor = Floor(here, seconds=1 if quick else 2)
    if quick:
        return steps.measure(here, floor, rounds=1, runs=2, long=False)
    return steps.measure(here, floor, rounds=3, runs=12, long=True)


def _traces(here: Place, quick: bool) -> Iterator[Figure]:
    floor = Floor(here, seconds=1 if quick else 2)
    rounds, batches, looks = (1, 4, 3) if quick else (3, 20, 20)
    return traces.measure(here, floor, rounds, batches, looks)


SECTIONS: dict[str, Measured] = {
    "steps": _steps,
    "claims": lambda here, quick: scheduling.claims(
        here, 2_000 if quick else 18_000, 2 if quick else 5
    ),
    "inbox": lambda here, quick: inbox.crowded(
        here, 1_000 if quick else 10_000, 5 if quick else 50
    ),
    "resume": lambda here, quick: latency.resume(here, 5 if quick else 60),
    "queue": lambda here, quick: latency.queue(here, 5 if quick else 60),
    "cancel": lambda here, quick: latency.cancel(here, 3 if quick else 20),
    "http": lambda here, quick: web.http(here, 5 if quick else 60),
    "traces": _traces,
    "fanout": lambda here, quick: web.fanout(here, 2 if quick else 5),
    "audit": lambda here, quick: audit.measure(here, 2_000 if quick else 40_000),
    "retention": lambda here, quick: keeping.sweep(here, 10_000 if quick else 100_000),
    # The last one: it replaces the worker by others.
    "crowd": lambda here, quick: scheduling.crowd(
        here, *((1, 30, 20) if quick else (5, 2_000, 100))
    ),
}


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(prog="make bench ARGS=…", description=__doc__)
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, "redaction", []])
    parser.add_argument("--quick", action="store_true", help="fewer rounds, less than a minute")
    asked = parser.parse_args()
    if "redaction" in asked.sections:
        _redaction()
    wanted = [name for name in SECTIONS if name in (asked.sections or SECTIONS)]
    if wanted:
        _measure(wanted, asked.quick)


def _measure(wanted: list[str], quick: bool) -> None:
    began, figures = time.monotonic(), []
    with place() as here:
        for name in wanted:
            print(f"measuring {name} …", file=sys.stderr, flush=True)
            figures += SECTIONS[name](here, quick)
    print(shown(figures))
    print(f"\n{_machine()}; {time.monotonic() - began:.0f} s in all")


def _machine() -> str:
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    day = dt.date.today()
    return f"{day}, {os.cpu_count()} x {model}, Python {platform.python_version()}"


def _redaction() -> None:
    from benchmarks import redaction

    redaction.main()


if __name__ == "__main__":
    main()

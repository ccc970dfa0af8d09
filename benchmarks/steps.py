"""Durable steps a second of one run and of eight at once in one process, and what a step costs the database."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.floor import Floor, Summary
from benchmarks.place import Place, react, status_of, wait_until
from benchmarks.table import Figure

TURNS = 20
STEPS = 2 * TURNS + 1
_RUN_TABLES = (
    "run", "run_lease", "thread", "step", "message", "tool_call", "checkpoint", "event", "interrupt",
)  # fmt: skip
_TRACE_TABLES = ("span", "span_payload")


def measure(place: Place, floor: Floor, rounds: int, runs: int, long: bool) -> Iterator[Figure]:
    """Rates as ratios to the floor; then commits and bytes, counted."""
    agent = place.agent("react20", react(TURNS))
    _drive(place, [place.start(agent)])
    one = floor.rounds(1, rounds, lambda: _rate(place, agent, runs, threads=1))
    yield _figure("durable steps/s, 1 run", one, "0.30 R (goal 0.45)")
    eight = floor.rounds(8, rounds, lambda: _rate(place, agent, runs * 4, threads=8))
    yield _figure("durable steps/s, 8 runs in one process", eight, "0.12 R (goal 0.20)")
    yield from _cost(place, agent, TURNS, 8)
    if long:
        yield from _cost(place, place.agent("react200", react(200)), 200, 1)


def _figure(name: str, found: Summary, goal: str) -> Figure:
    noisy = " (noisy)" if found.noisy else ""
    return Figure(
        name, f"{found.ours:,.0f}/s", f"{found.floor:,.0f}/s", f"{found.ratio:.3f} R{noisy}", goal=goal
    )


def _rate(place: Place, agent: str, runs: int, threads: int) -> float:
    """Steps a second from the first claim to the end of the last run, so many runs at any time."""
    waiting = [place.start(agent) for _ in range(runs)]
    began = time.monotonic()
    lanes = [waiting[n::threads] for n in range(threads)]
    workers = [threading.Thread(target=_drive, args=(place, lane)) for lane in lanes]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return runs * STEPS / (time.monotonic() - began)


def _drive(place: Place, runs: Sequence[Any]) -> None:
    from django.db import connection

    from runtime_core.loop.drive import advance

    for run in runs:
        assert advance("bench", run.id), "somebody else has taken the run"
        assert status_of(run.id) == "completed", "the run did not end well"
    connection.close()


def _cost(place: Place, agent: str, turns: int, runs: int) -> Iterator[Figure]:
    """Counted over whole runs, from creation to end; autovacuum's own transactions are in the noise."""
    from runtime_core import ports

    with place.connect() as connection:
        waiting = [place.start(agent) for _ in range(runs)]
        ports.spans().flush()
        before = _counts(connection)
        _drive(place, waiting)
        ports.spans().flush()
        wait_until(lambda: _pending_spans(connection, waiting[-1].id) == 0, 10, "spans are written")
        after = _counts(connection)
    steps = runs * (2 * turns + 1)
    commits, wal, rows, trace = (
        (b - a) / steps for a, b in zip(before, after, strict=True)
    )
    yield Figure(f"write transactions per step, {turns} turns", f"{commits:.2f}", goal="1")
    yield Figure(
        f"database bytes per step, {turns} turns",
        f"{rows / 1e3:.2f} kB + {trace / 1e3:.2f} kB trace",
        goal="2.5 kB (goal 1.5)",
    )
    yield Figure(f"WAL bytes per step, {turns} turns", f"{wal / 1e3:.2f} kB")


def _counts(connection: Any) -> tuple[float, float, float, float]:
    """Transactions that wrote, WAL bytes, and the sizes of the run's and the trace's tables with their indexes."""
    size = "SELECT sum(pg_total_relation_size(t::regclass))::float8 FROM unnest(%s::text[]) AS t"
    xid, wal = connection.execute(
        "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::float8,"
        " (pg_current_wal_insert_lsn() - '0/0')::float8"
    ).fetchone()
    rows = connection.execute(size, [list(_RUN_TABLES)]).fetchone()[0]
    trace = connection.execute(size, [list(_TRACE_TABLES)]).fetchone()[0]
    return xid, wal, rows, trace


def _pending_spans(connection: Any, run_id: Any) -> int:
    statement = "SELECT count(*) FROM span WHERE run_id = %s AND ended_at IS NULL"
    return int(connection.execute(statement, [run_id]).fetchone()[0])

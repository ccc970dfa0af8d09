"""Durable steps a second, what a step costs the database, and what loading a long run costs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.floor import Floor, Summary
from benchmarks.lanes import Lanes, drive, processes, together
from benchmarks.place import Place, react, status_of, wait_until
from benchmarks.table import Figure

TURNS = 20
CHAIN_STEPS = 20
REACT_STEPS = 2 * TURNS + 1
LOADS = 20
_RUN_TABLES = (
    "run", "run_lease", "thread", "step", "message", "tool_call", "checkpoint", "event", "interrupt",
)  # fmt: skip
_TRACE_TABLES = ("span", "span_payload")


def measure(place: Place, floor: Floor, rounds: int, runs: int, long: bool) -> Iterator[Figure]:
    """Rates as ratios to the floor; then commits and bytes, counted. The numbers are those of the goals."""
    chain = place.agent("chain20", [{"text": "unused"}], engine="graph", graph="chain20")
    yield from _rates(place, floor, rounds, 2 * runs, chain)
    agent = place.agent("react20", react(TURNS))
    yield from _react_rates(place, floor, rounds, runs, agent)
    yield from _cost(place, chain, CHAIN_STEPS, 8, "chain20")
    yield from _cost(place, agent, REACT_STEPS, 8, "20 turns")
    if long:
        yield from _cost(place, place.agent("react200", react(200)), 401, 2, "200 turns")
        yield _load(place)


def _rates(place: Place, floor: Floor, rounds: int, runs: int, agent: str) -> Iterator[Figure]:
    """Steps of plain code, a commit each: the workload by which engines are compared."""

    def rate(lanes: int, others: Sequence[Lanes] = ()) -> float:
        return _rate(place, agent, runs * lanes, lanes, CHAIN_STEPS, others)

    rate(8)  # the connections and caches of all lanes
    one = floor.rounds(1, rounds, lambda: rate(1))
    yield _figure("1: durable steps/s, chain20, 1 run", one, "0.30 R (goal 0.45)")
    eight = floor.rounds(8, rounds, lambda: rate(8))
    yield _figure("2: chain20, 8 runs in one process", eight, "0.12 R (goal 0.20)")
    with processes(2) as others:
        rate(8, others)  # their connections and caches
        apart = floor.rounds(8, rounds, lambda: rate(8, others))
    yield _figure("3: chain20, 8 runs in two processes", apart, "0.15 R (goal 0.25)")


def _react_rates(
    place: Place, floor: Floor, rounds: int, runs: int, agent: str
) -> Iterator[Figure]:
    """Turns of a model and a tool, with permissions, ledger and redaction."""
    _rate(place, agent, 8, 8, REACT_STEPS)
    one = floor.rounds(1, rounds, lambda: _rate(place, agent, runs, 1, REACT_STEPS))
    yield _figure("durable steps/s, react20, 1 run", one, "")
    eight = floor.rounds(8, rounds, lambda: _rate(place, agent, runs * 4, 8, REACT_STEPS))
    yield _figure("react20, 8 runs in one process", eight, "")


def _figure(name: str, found: Summary, goal: str) -> Figure:
    noisy = " (noisy)" if found.noisy else ""
    return Figure(
        name,
        f"{found.ours:,.0f}/s",
        f"{found.floor:,.0f}/s",
        f"{found.ratio:.3f} R{noisy}",
        goal=goal,
    )


def _start(place: Place, agent: str, runs: int) -> list[Any]:
    return [place.start(agent).id for _ in range(runs)]


def _drive_all(waiting: Sequence[Any]) -> None:
    drive(waiting)
    _check(waiting)


def _check(waiting: Sequence[Any]) -> None:
    for run_id in waiting:
        assert status_of(run_id) == "completed", "the run did not end well"


def _rate(
    place: Place, agent: str, runs: int, lanes: int, steps: int, others: Sequence[Lanes] = ()
) -> float:
    """Steps a second from the first claim to the end of the last run, so many runs at any time."""
    waiting = _start(place, agent, runs)
    mine = [waiting[n::lanes] for n in range(lanes)]
    began = time.monotonic()
    for n, other in enumerate(others):
        other.drive(mine[n :: len(others)])
    for other in others:
        other.wait()
    if not others:
        together(mine)
    took = time.monotonic() - began
    _check(waiting)
    return runs * steps / took


def _cost(place: Place, agent: str, steps: int, runs: int, name: str) -> Iterator[Figure]:
    """Counted over whole runs, from creation to end; autovacuum's own transactions are in the noise."""
    from runtime_core import ports

    with place.connect() as connection:
        waiting = _start(place, agent, runs)
        ports.spans().flush()
        before = _counts(connection)
        _drive_all(waiting)
        ports.spans().flush()
        wait_until(lambda: _pending_spans(connection, waiting[-1]) == 0, 10, "spans are written")
        after = _counts(connection)
    commits, wal, rows, trace = (
        (b - a) / (runs * steps) for a, b in zip(before, after, strict=True)
    )
    yield Figure(f"5: write transactions per step, {name}", f"{commits:.2f}", goal="1")
    yield Figure(
        f"6: database bytes per step, {name}",
        f"{rows / 1e3:.2f} kB + {trace / 1e3:.2f} kB trace",
        goal="2.5 kB (goal 1.5)",
    )
    yield Figure(f"WAL bytes per step, {name}", f"{wal / 1e3:.2f} kB")


def _load(place: Place) -> Figure:
    """From the claim of a run that has 200 turns behind it to the picture that its worker goes on with."""
    from runtime_core.loop import restore
    from runtime_core.values import Claim

    last = {"text": "May I?", "calls": [{"tool": "do_if_agreed", "args": {"number": 1}}]}
    agent = place.agent("asks200", [*react(200)[:-1], last, {"text": "Done."}])
    [run_id] = _start(place, agent, 1)
    drive([run_id])
    assert status_of(run_id) == "interrupted"
    claim, took = Claim(run_id, 1, "bench"), []
    for _ in range(LOADS + 3):
        began = time.monotonic()
        restore.restore(claim, restore.load_run(claim))
        took.append(time.monotonic() - began)
    return Figure.latency("7: load the state of a run of 200 turns", took[3:], "7 (goal 4)")


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

"""What a step costs the database, counted: commits, statements and bytes."""

from __future__ import annotations

from django.db import connection

from runtime_core import ports, prepared, sql, sql_claim
from runtime_core.models import Run
from tests.runtime.world import World, call, drive

_TABLES = ("step", "message", "tool_call", "checkpoint", "event")


def turns(count: int) -> list[dict[str, object]]:
    """So many calls of a tool that only looks, and an answer."""
    looks = [{"text": f"Look {n:03}.", "calls": [call("look", at=f"{n:03}")]} for n in range(count)]
    return [*looks, {"text": "Seen."}]


def transactions() -> int:
    """The id of the next transaction that writes."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint")
        return int(cursor.fetchone()[0])


def bytes_of(run: Run) -> int:
    """What the run's rows hold, without indexes and page headers."""
    total = 0
    with connection.cursor() as cursor:
        for table in _TABLES:
            cursor.execute(
                f"SELECT sum(pg_column_size(t.*)) FROM {table} t WHERE run_id = %s",  # noqa: S608
                [run.id],
            )
            total += cursor.fetchone()[0]
    return total


def test_a_step_is_one_commit(world: World) -> None:
    run = world.start(turns(20))
    ports.spans().flush()

    before = transactions()
    done = drive(run)
    after = transactions()

    assert (done.status, done.steps) == ("completed", 41)
    # Beside the steps: the claim, the first step's announcement, a lease renewed, batches of spans.
    assert after - before <= 41 + 15


def test_a_late_step_stores_no_more_than_an_early_one(world: World) -> None:
    limits = {"max_steps": 500, "max_tokens": 1_000_000}
    short = drive(world.start(turns(10), limits=limits))
    long = drive(world.start(turns(80), limits=limits))

    assert (short.steps, long.steps) == (21, 161)
    assert bytes_of(long) / long.steps < 1.15 * bytes_of(short) / short.steps


def test_the_hot_statements_are_planned_once_a_connection(world: World) -> None:
    drive(world.start(turns(3)))

    with connection.cursor() as cursor:
        cursor.execute("SELECT statement FROM pg_prepared_statements")
        known = [row[0] for row in cursor.fetchall()]
    decided = frozenset({"kept", "stepped", "said", "proposed", "saved", "told"})
    for statement in (sql.commit_step(decided), sql_claim.CLAIM_ONE):
        assert prepared.numbered(statement)[0] in known

"""The runs whose time is over and that still have something of a class, the oldest first, some at a time."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator

from django.db import connection

from traces.holds import HELD
from traces.retention.policy import DUE, Kept

# Before any run that has ended.
_START = (dt.datetime(1, 1, 2, tzinfo=dt.UTC), uuid.UUID(int=0))


def pages(some: str, size: int, found: Kept) -> Iterator[list[uuid.UUID]]:
    """Ids of runs of which `some` finds a row."""
    sql = (
        f"WITH RECURSIVE {HELD} SELECT run.ended_at, run.id FROM run WHERE {DUE}"  # noqa: S608
        f" AND (run.ended_at, run.id) > (%(at)s, %(after)s) AND EXISTS ({some})"
        f" ORDER BY run.ended_at, run.id LIMIT {size}"
    )
    at, after = _START
    while True:
        with connection.cursor() as cursor:
            cursor.execute(sql, {**found.values, "at": at, "after": after})
            rows = cursor.fetchall()
        if not rows:
            return
        yield [run_id for _, run_id in rows]
        at, after = rows[-1]

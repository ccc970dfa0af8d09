"""What is kept how long, and the sweep that lets go of what is older, in short batches.

The events of a run whose text deltas are gone have holes in their sequence; its output stays in the run.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db import connection

from runtime_core import clock, ports
from runtime_core.states import ENDED
from runtime_core.values import SYSTEM, Audit

BATCH = 2_000

_ENDED = "run.status = ANY(%(ended)s) AND run.ended_at < %(before)s"


@dataclass(frozen=True, slots=True)
class DataClass:
    """One kind of data: its name, how long it is kept after its run ended, and where it is."""

    name: str
    days: int
    table: str
    key: str
    join: str
    only: str = ""


CLASSES = (
    DataClass(
        "text deltas", 3, "event", "run_id, seq", "run.id = row.run_id", "AND row.type = 'text_delta'"
    ),
    DataClass(
        "payloads of spans", 30, "span_payload", "span_id, part",
        "run.id = (SELECT run_id FROM span WHERE id = row.span_id)",
    ),
    DataClass("spans", 90, "span", "id", "run.id = row.run_id"),
)  # fmt: skip


def sweep(dry_run: bool, tell: Callable[[str, int, int], None]) -> dict[str, int]:
    """Delete what is older than its class is kept, or only count it; `tell(name, days, rows)` for each class."""
    gone: dict[str, int] = {}
    for kind in CLASSES:
        before = clock.now() - dt.timedelta(days=kind.days)
        gone[kind.name] = _count(kind, before) if dry_run else _delete(kind, before)
        tell(kind.name, kind.days, gone[kind.name])
    if not dry_run and any(gone.values()):
        entry = Audit("retention.run", SYSTEM, "retention", "sweep", data=dict(gone))
        ports.audit().record([entry])
    return gone


def _count(kind: DataClass, before: dt.datetime) -> int:
    sql = (
        f"SELECT count(*) FROM {kind.table} row JOIN run ON {kind.join} WHERE {_ENDED} {kind.only}"  # noqa: S608
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, _values(before))
        row = cursor.fetchone()
    return int(row[0]) if row else 0


def _delete(kind: DataClass, before: dt.datetime) -> int:
    columns = ", ".join(f"row.{name.strip()}" for name in kind.key.split(","))
    sql = (
        f"DELETE FROM {kind.table} WHERE ({kind.key}) IN (SELECT {columns} FROM {kind.table} row"  # noqa: S608
        f" JOIN run ON {kind.join} WHERE {_ENDED} {kind.only} LIMIT {BATCH})"
    )
    total = 0
    while True:
        with connection.cursor() as cursor:
            cursor.execute(sql, _values(before))
            deleted = int(cursor.rowcount)
        total += deleted
        if deleted < BATCH:
            return total


def _values(before: dt.datetime) -> dict[str, Any]:
    return {"ended": sorted(status.value for status in ENDED), "before": before}

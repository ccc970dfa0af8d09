"""Lets go of what has been kept long enough, some runs at a time; one that stopped anywhere is gone on with."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction
from django.db.models import F
from django.db.models.functions import Now

from runtime_core import clock, ports
from runtime_core.values import SYSTEM, Audit
from traces import holds
from traces.models import DataClass, RetentionTotal
from traces.retention import audit, threads
from traces.retention.classes import STATEMENTS, Statements
from traces.retention.paging import pages
from traces.retention.policy import DUE, Kept, in_words, kept

BATCH = 2_000


@dataclass(slots=True)
class Stopwatch:
    """How many rows went, the longest transaction, and until when to go on."""

    until: float | None = None
    rows: int = 0
    longest_ms: int = 0

    @property
    def is_over(self) -> bool:
        """True if the time for this sweep is used up."""
        return self.until is not None and clock.monotonic() > self.until

    def time(self, work: Callable[[], int]) -> int:
        """Do the work in one transaction, and note how long it held its locks."""
        began = clock.monotonic()
        with transaction.atomic():
            holds.guard()
            rows = work()
        self.rows += rows
        self.longest_ms = max(self.longest_ms, int((clock.monotonic() - began) * 1000))
        return rows


def sweep(
    dry_run: bool, tell: Callable[[str, str, int], None], *, seconds: float | None = None
) -> dict[str, int]:
    """Delete what is older than it is kept, or only count it; `tell(class, kept, rows)` for each class.

    With `seconds` it stops after about that long; the next sweep goes on.
    """
    gone: dict[str, int] = {}
    until = clock.monotonic() + seconds if seconds is not None else None
    for data_class in DataClass:
        found = kept(data_class)
        rows = count(data_class, found) if dry_run else _delete(data_class, found, until)
        gone[data_class.value] = rows
        tell(data_class.label, in_words(found.days), rows)
    if not dry_run and any(gone.values()):
        ports.audit().record([Audit("retention.run", SYSTEM, "retention", "sweep", data=gone)])
    return gone


def count(data_class: DataClass, found: Kept, projects: list[uuid.UUID] | None = None) -> int:
    """How many rows the next sweep would delete, in these projects or in all; of whole threads, how many threads."""
    if data_class is DataClass.AUDIT_PAYLOADS:
        return audit.count(found, projects)
    here = "" if projects is None else "AND run.project_id = ANY(%(here)s)"
    values = {**found.values, "here": projects}
    if data_class is DataClass.RUN_STATE:
        doomed, counted = threads.DOOMED, "count(*)"
    else:
        doomed, counted = STATEMENTS[data_class].doomed, STATEMENTS[data_class].count
    due = f"due AS MATERIALIZED (SELECT run.id, run.thread_id FROM run WHERE {DUE} {here})"  # noqa: S608
    sql = f"WITH RECURSIVE {holds.HELD}, {due}, doomed AS ({doomed}) SELECT {counted} FROM doomed"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        row = cursor.fetchone()
    return int(row[0]) if row else 0


def _delete(data_class: DataClass, found: Kept, until: float | None) -> int:
    watch = Stopwatch(until)
    if data_class is DataClass.RUN_STATE:
        threads.sweep(found, watch.time, lambda: watch.is_over)
    elif data_class is DataClass.AUDIT_PAYLOADS:
        audit.sweep(found, watch.time, lambda: watch.is_over)
    else:
        _delete_rows(STATEMENTS[data_class], found, watch)
    _note(data_class, watch)
    return watch.rows


def _delete_rows(of: Statements, found: Kept, watch: Stopwatch) -> None:
    sql = (
        f"WITH RECURSIVE {holds.HELD}, due AS MATERIALIZED ("  # noqa: S608
        f" SELECT run.id FROM run WHERE run.id = ANY(%(runs)s) AND {DUE} FOR UPDATE OF run SKIP LOCKED"
        f"), doomed AS ({of.doomed} LIMIT {BATCH}), {of.gone} SELECT count(*) FROM gone"
    )
    for runs in pages(of.some, of.page, found):
        values = {**found.values, "runs": runs}
        while not watch.is_over and watch.time(lambda v=values: _one(sql, v)):  # type: ignore[misc]
            pass


def _one(sql: str, values: dict[str, Any]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        row = cursor.fetchone()
    return int(row[0]) if row else 0


def _note(data_class: DataClass, watch: Stopwatch) -> None:
    RetentionTotal.objects.get_or_create(data_class=data_class.value)
    RetentionTotal.objects.filter(data_class=data_class.value).update(
        rows=F("rows") + watch.rows,
        last_rows=watch.rows,
        last_at=Now(),
        longest_ms=watch.longest_ms,
    )

"""Whole threads whose time is over: a conversation goes with all its runs, and no run goes out of its middle."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from django.db import connection, transaction

from runtime_core.forget import forgetting
from runtime_core.models import Run, Thread
from runtime_core.tools import workspace
from runtime_core.values import SYSTEM, Audit
from traces.holds import HELD
from traces.retention.paging import pages
from traces.retention.policy import DUE, Kept

A_BATCH = 10

# None of its runs may be younger, held or going on, nor any run that takes back what one of them did.
WHOLE = f"""NOT EXISTS (SELECT 1 FROM run WHERE run.thread_id = thread.id AND NOT ({DUE}))
    AND NOT EXISTS (SELECT 1 FROM run undone JOIN run ON run.undoes_id = undone.id
        WHERE undone.thread_id = thread.id AND NOT ({DUE}))"""  # noqa: S608
SOME = f"SELECT 1 FROM thread WHERE thread.id = run.thread_id AND {WHOLE}"  # noqa: S608
DOOMED = f"SELECT id FROM thread WHERE id IN (SELECT thread_id FROM due) AND {WHOLE}"  # noqa: S608
_STILL = f"""
WITH RECURSIVE {HELD} SELECT id, project_id FROM thread WHERE id = ANY(%(threads)s) AND {WHOLE}
"""  # noqa: S608
# What a run has most of goes first, without a look at each row; the rest follows by its foreign keys.
_MANY = (
    "DELETE FROM span_payload WHERE span_id IN (SELECT id FROM span WHERE run_id = ANY(%(runs)s))",
    "DELETE FROM span WHERE run_id = ANY(%(runs)s)",
    "DELETE FROM event WHERE run_id = ANY(%(runs)s)",
    "DELETE FROM checkpoint WHERE run_id = ANY(%(runs)s)",
    "DELETE FROM step WHERE run_id = ANY(%(runs)s)",
)


def sweep(
    found: Kept, timed: Callable[[Callable[[], int]], int], is_over: Callable[[], bool]
) -> None:
    """Delete threads, some in a transaction, each with an entry in the audit and its workspaces."""
    for runs in pages(SOME, A_BATCH, found):
        if is_over():
            return
        timed(lambda runs=runs: _delete_threads_of(runs, found))  # type: ignore[misc]


def _delete_threads_of(runs: list[uuid.UUID], found: Kept) -> int:
    threads = list(
        Run.everything.filter(id__in=runs).values_list("thread_id", flat=True).distinct()
    )
    # Whoever wants to start a run in one of them waits, and then finds it gone.
    list(Thread.everything.select_for_update().filter(id__in=threads).values_list("id"))
    list(Run.everything.select_for_update().filter(thread__in=threads).values_list("id"))
    # Only now: somebody may have tried one again before it was locked.
    with connection.cursor() as cursor:
        cursor.execute(_STILL, {**found.values, "threads": threads})
        rows: list[tuple[uuid.UUID, uuid.UUID]] = cursor.fetchall()
    if rows:
        _delete(rows)
    return len(rows)


def _delete(rows: list[tuple[uuid.UUID, uuid.UUID]]) -> None:
    threads = [thread_id for thread_id, _ in rows]
    runs = list(Run.everything.filter(thread__in=threads).values_list("id", flat=True))
    entries = [
        Audit("retention.thread", SYSTEM, "thread", str(thread_id), project_id=project_id)
        for thread_id, project_id in rows
    ]
    with forgetting(entries):
        with connection.cursor() as cursor:
            for statement in _MANY:
                cursor.execute(statement, {"runs": runs})
        Thread.everything.filter(id__in=threads).delete()

    def tidy() -> None:
        for run_id in runs:
            workspace.remove(run_id)

    transaction.on_commit(tidy)

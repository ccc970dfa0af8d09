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
from traces.retention.policy import DUE, Kept

A_BATCH = 10

# None of its runs may be younger, held or going on, nor any run that takes back what one of them did.
DOOMED = """
SELECT thread.id, thread.project_id FROM thread
WHERE EXISTS (SELECT 1 FROM due WHERE due.thread_id = thread.id)
  AND NOT EXISTS (SELECT 1 FROM run r WHERE r.thread_id = thread.id AND r.id NOT IN (SELECT id FROM due))
  AND NOT EXISTS (SELECT 1 FROM run r JOIN run u ON u.undoes_id = r.id
      WHERE r.thread_id = thread.id AND u.id NOT IN (SELECT id FROM due))
"""
_SOME = f"""
WITH RECURSIVE {HELD}, due AS MATERIALIZED (SELECT run.id, run.thread_id FROM run WHERE {DUE})
SELECT * FROM ({DOOMED}) doomed WHERE %(only)s::uuid[] IS NULL OR id = ANY(%(only)s) ORDER BY id LIMIT {A_BATCH}
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
    while not is_over() and timed(lambda: _some(found)):
        pass


def _some(found: Kept) -> int:
    threads = [thread_id for thread_id, _ in _doomed(found, None)]
    # Whoever wants to start a run in one of them waits, and then finds it gone.
    list(Thread.objects.select_for_update().filter(id__in=threads).values_list("id"))
    list(Run.objects.select_for_update().filter(thread__in=threads).values_list("id"))
    # Somebody may have tried one again before it was locked.
    still = _doomed(found, threads) if threads else []
    if still:
        _delete(still)
    return len(still)


def _doomed(found: Kept, only: list[uuid.UUID] | None) -> list[tuple[uuid.UUID, uuid.UUID]]:
    with connection.cursor() as cursor:
        cursor.execute(_SOME, {**found.values, "only": only})
        return cursor.fetchall()


def _delete(rows: list[tuple[uuid.UUID, uuid.UUID]]) -> None:
    threads = [thread_id for thread_id, _ in rows]
    runs = list(Run.objects.filter(thread__in=threads).values_list("id", flat=True))
    entries = [
        Audit("retention.thread", SYSTEM, "thread", str(thread_id), project_id=project_id)
        for thread_id, project_id in rows
    ]
    with forgetting(entries):
        with connection.cursor() as cursor:
            for statement in _MANY:
                cursor.execute(statement, {"runs": runs})
        Thread.objects.filter(id__in=threads).delete()

    def tidy() -> None:
        for run_id in runs:
            workspace.remove(run_id)

    transaction.on_commit(tidy)

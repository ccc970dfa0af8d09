"""What goes with a run or a thread: all that derives from it."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from django.db import connection

from runtime_core.errors import NotEnded
from runtime_core.models import Run, Thread

_TRIES = 5

# Runs that work for one of them or were forked from it, that take back what it did, and those that came later in
# its conversation: they were given what was said in it.
_DERIVED = """
WITH RECURSIVE gone (id, thread_id, created_at) AS (
    SELECT id, thread_id, created_at FROM run WHERE id = ANY(%(runs)s::uuid[])
    UNION
    SELECT run.id, run.thread_id, run.created_at FROM gone JOIN run
        ON run.parent_id = gone.id OR run.undoes_id = gone.id
        OR (run.thread_id = gone.thread_id AND run.created_at > gone.created_at)
)
SELECT id, thread_id FROM gone
"""


@dataclass(frozen=True, slots=True)
class Reach:
    """The runs that go, and the threads of which nothing would be left."""

    runs: frozenset[uuid.UUID]
    threads: frozenset[uuid.UUID]


def locked(runs: Iterable[uuid.UUID], threads: Iterable[uuid.UUID]) -> Reach:
    """All that derives from these runs and threads, locked until the transaction ends; only what is still shown.

    Raises NotEnded if a run goes on, or if others keep coming.
    """
    runs, threads = frozenset(runs), frozenset(threads)
    found = _derived(runs, threads)
    for _ in range(_TRIES):
        _lock(found)
        again = _derived(runs, threads)
        if again == found:
            _require_end(found)
            return found
        found = again
    raise NotEnded("Runs keep deriving from it; wait for their end, then delete it.")


def _derived(seed: frozenset[uuid.UUID], threads: frozenset[uuid.UUID]) -> Reach:
    inside = Run.objects.filter(thread__in=threads).values_list("id", flat=True)
    with connection.cursor() as cursor:
        cursor.execute(_DERIVED, {"runs": list(seed | set(inside))})
        rows = cursor.fetchall()
    runs = frozenset(row[0] for row in rows)
    touched = {row[1] for row in rows}
    left = Run.everything.filter(thread__in=touched).exclude(id__in=runs)
    return Reach(runs, threads | (touched - set(left.values_list("thread", flat=True))))


def _lock(reach: Reach) -> None:
    # As a start does: the thread before its runs, so that no run begins in one that is going.
    of_runs = Run.objects.filter(id__in=reach.runs).values_list("thread", flat=True)
    threads = Thread.objects.filter(id__in=reach.threads | set(of_runs))
    list(threads.select_for_update().order_by("id").values_list("id"))
    runs = Run.objects.filter(id__in=reach.runs)
    list(runs.select_for_update().order_by("id").values_list("id"))


def _require_end(reach: Reach) -> None:
    going = Run.objects.filter(id__in=reach.runs, ended_at=None).order_by("id").first()
    if going is not None:
        raise NotEnded(
            f"Run {going.id} has not ended: cancel it and wait for its end, then delete.",
            run_id=str(going.id),
        )
    due = Run.objects.filter(id__in=reach.runs, compensation="due").order_by("id").first()
    if due is not None:
        raise NotEnded(
            f"What run {due.id} did is about to be taken back; wait for that, then delete.",
            run_id=str(due.id),
        )

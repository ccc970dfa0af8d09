"""The queue as people see it: who is next, how many are ahead and why a run waits; and when no more are let in."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import F

from runtime_core.errors import Backpressure
from runtime_core.limits import limits
from runtime_core.models import ProjectQueue, Run
from runtime_core.sql_claim import DUE, LOOK
from runtime_core.states import RunStatus
from runtime_core.transactions import one_commit

# A start may take so long from its time to its commit: it counts as new until it must be in the count.
_MARGIN_SECONDS = 5
_COUNTED = 1_000

_COUNT = """
WITH found AS (
    SELECT project_id, count(*) AS queued FROM run WHERE status = 'pending' GROUP BY project_id
)
INSERT INTO project_queue (project_id, queued, counted_at)
SELECT project_id, COALESCE(found.queued, 0), statement_timestamp()
FROM found FULL JOIN project_queue USING (project_id)
WHERE found.queued > 0 OR project_queue.queued > 0
ON CONFLICT (project_id) DO UPDATE SET queued = EXCLUDED.queued, counted_at = EXCLUDED.counted_at
"""
_SINCE = """
SELECT COALESCE(project_queue.most, %(most)s),
       COALESCE(project_queue.queued, 0),
       (SELECT count(*) FROM (
            SELECT FROM run WHERE run.project_id = %(project)s
            AND created_at > COALESCE(project_queue.counted_at, '-infinity') - make_interval(secs => %(margin)s)
            LIMIT COALESCE(project_queue.most, %(most)s)) AS new_ones)
FROM (SELECT 1) AS one LEFT JOIN project_queue ON project_queue.project_id = %(project)s
"""
_WORKERS = """
SELECT EXISTS (SELECT FROM worker WHERE stopped_at IS NULL AND missing_since IS NULL
               AND seen_at > clock_timestamp() - make_interval(secs => %s))
"""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run stands in its project's queue, and what else it waits for; `ahead` is counted up to 1,000."""

    ahead: int
    reason: str | None

    @property
    def words(self) -> str:
        """The same as a person reads it: "2 ahead, quota of project"."""
        more = "+" if self.ahead >= _COUNTED else ""
        parts = [f"{self.ahead:,}{more} ahead"] if self.ahead else []
        return ", ".join([*parts, self.reason] if self.reason else parts or ["next"])


def count() -> None:
    """Count every project's queue, for those who must know without counting."""
    with one_commit("count_queues", alone=True), connection.cursor() as cursor:
        cursor.execute(_COUNT)


def count_reaped(projects: Sequence[uuid.UUID]) -> None:
    """Count runs that were taken from lost workers, by their projects: for people who watch, no more."""
    for project_id, runs in Counter(projects).items():
        row = ProjectQueue.objects.filter(project_id=project_id)
        if not row.update(reaped=F("reaped") + runs):
            ProjectQueue.objects.bulk_create(
                [ProjectQueue(project_id=project_id, reaped=runs)], ignore_conflicts=True
            )


def due(most: int) -> list[uuid.UUID]:
    """The runs that a claim would take now, projects in turn."""
    with connection.cursor() as cursor:
        cursor.execute(DUE, {"most": most})
        return [row[0] for row in cursor.fetchall()]


def refuse_when_full(project_id: uuid.UUID) -> None:
    """Backpressure if so many runs of the project wait already that one more would only wait longer."""
    params: dict[str, Any] = {
        "project": project_id,
        "most": limits().queued_runs_per_project,
        "margin": _MARGIN_SECONDS,
    }
    with connection.cursor() as cursor:
        cursor.execute(_SINCE, params)
        most, counted, since = cursor.fetchone()
    if counted + since < most:
        return
    # It may be full; only now it is worth counting.
    waiting = Run.objects.filter(project_id=project_id, status=RunStatus.PENDING.value)
    queued = waiting[: most + 1].count()
    if queued >= most:
        raise Backpressure(
            f"The project's queue is full: {queued} of {most} runs wait. Try again in a few seconds.",
            retry_after=5,
        )


def places(runs: Sequence[Run]) -> dict[uuid.UUID, Place]:
    """Where each of these runs stands that nobody has taken yet; the others are left out."""
    asked = [run.id for run in runs if waits(run)]
    if not asked:
        return {}
    nobody = not any_worker()
    with connection.cursor() as cursor:
        cursor.execute(LOOK, {"runs": asked, "most": _COUNTED})
        rows = cursor.fetchall()
    return {run_id: Place(ahead, reason(nobody, *facts)) for run_id, ahead, *facts in rows}


def waits(run: Run) -> bool:
    """True if the run only waits for its turn or for a place."""
    return run.state is RunStatus.PENDING or (
        run.state is RunStatus.WAITING and bool(run.waits_for)
    )


def any_worker() -> bool:
    """True if a worker process has said lately that it lives."""
    with connection.cursor() as cursor:
        cursor.execute(_WORKERS, [limits().heartbeat_seconds * 3])
        return bool(cursor.fetchone()[0])


def reason(
    nobody: bool, waits_for: str, early: bool, all_open: bool, project_open: bool, agent_open: bool
) -> str | None:
    """The first of what holds the run up, in words; None if it is only a matter of turns."""
    kind, _, name = waits_for.partition(":")
    if nobody:
        return "no worker is running"
    if kind:
        return f"waiting for {kind} {name}"
    if early:
        return "not due yet"
    if not all_open:
        return "quota of all projects"
    if not project_open:
        return "quota of project"
    return None if agent_open else "quota of agent"

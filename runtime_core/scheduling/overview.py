"""What goes on in the queue and the workers, for the system page: a few statements, each bounded."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connection

from runtime_core.limits import limits
from runtime_core.scheduling.queue import reason
from runtime_core.sql_claim import QUEUES

MOST = 50

_WORKERS = """
SELECT name, slots, (SELECT count(*) FROM run_lease WHERE run_lease.worker = worker.name),
       extract(epoch FROM clock_timestamp() - seen_at)::float8,
       missing_since IS NOT NULL, stopped_at IS NOT NULL
FROM worker WHERE stopped_at IS NULL OR stopped_at > clock_timestamp() - interval '5 minutes'
ORDER BY stopped_at IS NOT NULL, missing_since IS NOT NULL, name LIMIT %(most)s
"""
_LEASES = """
SELECT run.id, run.title, project.name, run_lease.worker,
       extract(epoch FROM run_lease.until - clock_timestamp())::float8,
       extract(epoch FROM clock_timestamp() - (
           SELECT ts FROM event WHERE event.run_id = run.id ORDER BY seq DESC LIMIT 1))::float8
FROM run_lease JOIN run ON run.id = run_lease.run_id JOIN project ON project.id = run.project_id
WHERE run.project_id = ANY(%(projects)s::uuid[])
ORDER BY run_lease.until LIMIT %(most)s
"""
# Only what concerns the given projects, and what concerns everybody.
_QUOTAS = """
SELECT quota.kind, COALESCE(project.name, agent.name, quota.name), quota.at_once,
       count(permit.id) FILTER (WHERE permit.held_by IS NOT NULL)
FROM quota
LEFT JOIN project ON project.id = quota.project_id
LEFT JOIN agent ON agent.id = quota.agent_id
LEFT JOIN permit ON permit.quota_id = quota.id
WHERE COALESCE(quota.project_id, agent.project_id) IS NULL
   OR COALESCE(quota.project_id, agent.project_id) = ANY(%(projects)s::uuid[])
GROUP BY quota.id, project.name, agent.name ORDER BY quota.kind, 2 LIMIT %(most)s
"""
_ORPHANS = """
SELECT count(*) FROM run LEFT JOIN run_lease ON run_lease.run_id = run.id
WHERE run.status = 'running' AND run.project_id = ANY(%(projects)s::uuid[])
  AND (run_lease.until IS NULL OR run_lease.until < clock_timestamp())
"""


@dataclass(frozen=True, slots=True)
class WorkerLine:
    """One worker process; `state` is alive, late, gone or stopped."""

    name: str
    slots: int
    busy: int
    seen_seconds: float
    state: str


@dataclass(frozen=True, slots=True)
class LeaseLine:
    """One running run: who holds it, for how much longer, and how long ago it last told something."""

    run_id: uuid.UUID
    title: str
    project: str
    worker: str
    left_seconds: float
    silent_seconds: float


@dataclass(frozen=True, slots=True)
class QueueLine:
    """One project's queue, and what holds its first run up if it is not only a matter of turns."""

    project: str
    queued: int
    most: int
    waiting: int
    oldest_seconds: float
    reason: str | None

    @property
    def is_full(self) -> bool:
        return self.queued >= self.most


@dataclass(frozen=True, slots=True)
class QuotaLine:
    """One quota and how much of it is in use."""

    kind: str
    of: str
    at_once: int
    used: int


@dataclass(frozen=True, slots=True)
class Overview:
    """Everything the system page shows of these projects."""

    workers: list[WorkerLine]
    leases: list[LeaseLine]
    queues: list[QueueLine]
    quotas: list[QuotaLine]
    orphans: int

    @property
    def any_worker(self) -> bool:
        return any(worker.state == "alive" for worker in self.workers)

    @property
    def queued(self) -> int:
        return sum(line.queued for line in self.queues)

    @property
    def oldest_seconds(self) -> float:
        return max((line.oldest_seconds for line in self.queues), default=0.0)

    @property
    def silent_seconds(self) -> float:
        return max((line.silent_seconds for line in self.leases), default=0.0)


def overview(projects: Sequence[uuid.UUID]) -> Overview:
    """The workers, and of these projects the queues, the running runs and the quotas."""
    params = {
        "projects": list(projects),
        "most": MOST,
        "length": limits().queued_runs_per_project,
    }
    workers = [
        WorkerLine(name, slots, busy, seen, _state(seen, missing, stopped))
        for name, slots, busy, seen, missing, stopped in _rows(_WORKERS, params)
    ]
    nobody = not any(worker.state == "alive" for worker in workers)
    queues = [
        QueueLine(name, queued, most, waiting, oldest, _why(nobody, queued, *rooms))
        for name, queued, most, waiting, oldest, *rooms in _rows(QUEUES, params)
    ]
    return Overview(
        workers,
        [LeaseLine(*row) for row in _rows(_LEASES, params)],
        queues,
        [QuotaLine(*row) for row in _rows(_QUOTAS, params)],
        int(_rows(_ORPHANS, params)[0][0]),
    )


def _why(nobody: bool, queued: int, all_open: bool, project_open: bool) -> str | None:
    return reason(nobody, "", False, all_open, project_open, True) if queued else None


def _state(seen: float, missing: bool, stopped: bool) -> str:
    if stopped:
        return "stopped"
    if missing:
        return "gone"
    return "late" if seen > limits().heartbeat_seconds * 3 else "alive"


def _rows(statement: str, params: dict[str, object]) -> list[tuple]:  # type: ignore[type-arg]
    with connection.cursor() as cursor:
        cursor.execute(statement, params)  # type: ignore[arg-type]
        return list(cursor.fetchall())

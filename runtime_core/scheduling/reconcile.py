"""Finds what nobody moves: runs of lost workers, runs whose wait is over, runs past their deadline. Idempotent."""

from __future__ import annotations

import uuid

import structlog
from django.db import Error as DatabaseError
from django.db.models.functions import Now

from runtime_core import ports, transitions
from runtime_core.errors import IllegalTransition
from runtime_core.events.publish import announce
from runtime_core.loop import compensation, parked, stopping
from runtime_core.loop.continuation import ended_audit
from runtime_core.models import Run
from runtime_core.scheduling import liveness, queue, quotas, wake
from runtime_core.states import RunStatus
from runtime_core.transactions import one_commit
from runtime_core.transitions import NewEvent

log = structlog.get_logger(__name__)

BATCH = 100


def dispatch() -> int:
    """Hint at runs that are due and that no worker has taken; how many."""
    wake_due()
    stopping.wake_parents()
    queue.count()
    sent = 0
    for run_id in queue.due(BATCH):
        if not wake.send(run_id):
            break
        sent += 1
    return sent


def wake_due() -> int:
    """Re-queue runs that waited for a time which has come; how many."""
    due = Run.objects.filter(status=RunStatus.WAITING.value, available_at__lte=Now(), waits_for="")
    return quotas.wake_waiting() + sum(
        _move(run_id, RunStatus.PENDING, "wake")
        for run_id in list(due.values_list("id", flat=True)[:BATCH])
    )


def reconcile() -> int:
    """Re-queue the runs of lost workers, end those past their deadline, finish what was being cancelled; how many."""
    lost = transitions.reap(liveness.dead_workers())
    for run_id, last_seq, _, project_id in lost:
        announce(run_id, last_seq, project_id, inbox=False)
        wake.send(run_id)
    queue.count_reaped([project_id for *_, project_id in lost])
    quotas.settle()
    ended = _end_late() + parked.finish_cancels() + stopping.stop_orphans()
    for made in compensation.begin_due():
        wake.send(made.id)
    for run_id, _, epoch, _ in lost:
        _abandon_spans(run_id, epoch)
    return len(lost) + ended


def _abandon_spans(run_id: uuid.UUID, epoch: int) -> None:
    """Mark what the lost worker left open. A worker that sleeps may hold the rows: a trace is not worth waiting for."""
    try:
        ports.spans().abandon(run_id, epoch)
    except DatabaseError as error:
        log.warning("reconcile.spans", run=str(run_id), error=type(error).__name__)


def _end_late() -> int:
    parked = [RunStatus.PENDING.value, RunStatus.WAITING.value]
    # One that waits for its children has its clock stopped: they have deadlines of their own.
    late = Run.objects.filter(status__in=parked, deadline_at__lt=Now(), stopped_at__isnull=True)
    message = "The run's time was over before it could go on."
    error = {"code": "deadline", "message": message, "retryable": True}
    events = [NewEvent("error", error)]
    return sum(
        _move(run_id, RunStatus.TIMED_OUT, "deadline", events=events, error=error)
        for run_id in list(late.values_list("id", flat=True)[:BATCH])
        if not stopping.stop_children_of(run_id)
    )


def _move(run_id: uuid.UUID, to: RunStatus, cause: str, **changes: object) -> bool:
    """One conditional move in a transaction of its own; False if somebody else was first."""
    try:
        with one_commit("sweep"):
            seq = transitions.move(run_id, to, cause, **changes)  # type: ignore[arg-type]
            run = Run.objects.select_related("agent", "agent_version").get(id=run_id)
            if to.ended:
                ports.audit().record([ended_audit(run, to)])
                parked.end_trace(run, to)
    except IllegalTransition:
        return False
    announce(run_id, seq, run.project_id, inbox=False)
    return True

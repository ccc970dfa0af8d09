"""Stops a run with all that works for it: its children first, and what waits for them last.

Rows are locked from the parent down to the children, never the other way.
"""

from __future__ import annotations

import uuid

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from runtime_core import ports, transitions
from runtime_core.events.publish import announce
from runtime_core.loop import control, parked
from runtime_core.models import Run, ToolCall
from runtime_core.states import ENDED, PARKED, CallStatus, RunStatus
from runtime_core.transactions import one_commit
from runtime_core.transitions import NewEvent
from runtime_core.values import SYSTEM, Actor, Claim

_ENDED = [status.value for status in ENDED]


def stop(run: Run, actor: Actor) -> bool:
    """Ask the run, whose row the caller has locked, and its children to stop; True while any is at work.

    What nobody holds ends in this transaction, what waits for its children when the last of them has ended.
    """
    if run.cancel_requested_at is None:
        run.cancel_requested_at = timezone.now()
        run.cancel_requested_by_id = actor.user_id
        run.save(update_fields=["cancel_requested_at", "cancel_requested_by"])
    busy = stop_children(run, actor)
    if run.state in PARKED and not busy:
        seq = parked.cancel(run)
        _wake_parent_of(run)
    else:
        if run.state in PARKED:
            parked.withdraw(run)
        seq = _tell_cancelling(run, actor)
        transaction.on_commit(lambda: control.signal(run.id))
        busy = True
    announce(run.id, seq, run.project_id, inbox=True)
    return busy


def stop_children(run: Run, actor: Actor) -> bool:
    """Ask whatever works for the run, whose row the caller has locked, to stop; True while any of it is at work."""
    busy = False
    for child in run.live_children.select_for_update().order_by("id"):
        busy = stop(child, actor) or busy
    return busy


def force(run: Run, actor: Actor) -> None:
    """End a run, whose row the caller has locked, and all that works for it, without waiting for any worker.

    Each worker loses its lease with it: it can write nothing more, and what it was doing counts as of unknown outcome.
    """
    for child in run.live_children.select_for_update().order_by("id"):
        force(child, actor)
    if run.state is RunStatus.RUNNING:
        transitions.release(Claim(run.id, run.lease_epoch, ""), "forced")
        run.status = RunStatus.PENDING.value
        transaction.on_commit(lambda: control.signal(run.id))
    name = ports.redactor().text(actor.name)
    transitions.tell(run.id, [NewEvent("progress", {"message": f"Stopped by force by {name}"})])
    seq = parked.cancel(run)
    _wake_parent_of(run)
    announce(run.id, seq, run.project_id, inbox=True)


def stop_children_of(run_id: uuid.UUID) -> bool:
    """The same in a transaction of its own, as the system."""
    with one_commit("stop"):
        return stop_children(Run.objects.select_for_update().get(id=run_id), SYSTEM)


def wake_parent(run_id: uuid.UUID) -> bool:
    """Set a run going again, or end it, that waited for its children if none of them is at work any more."""
    with one_commit("answered"):
        run = Run.objects.select_for_update().filter(id=run_id).first()
        if run is None or not _answered(Run.objects.filter(id=run_id)).exists():
            return False
        if run.cancel_requested_at is not None:
            seq, gone_on = parked.cancel(run), False
        else:
            seq = transitions.move(
                run_id, RunStatus.PENDING, "answered", worked_seconds=_worked_seconds(run)
            )
            gone_on = True
        if not gone_on:
            _wake_parent_of(run)
    announce(run.id, seq, run.project_id, inbox=not gone_on)
    return True


def _wake_parent_of(child: Run) -> None:
    """After the commit that ended it, its parent looks whether it was the last."""
    parent_id = child.parent_id
    if child.is_child and parent_id:
        transaction.on_commit(lambda: wake_parent(parent_id), robust=True)


def wake_parents() -> int:
    """The same for every run whose last child ended without telling it (its worker was lost); how many."""
    ids = _answered(Run.objects.all()).values_list("id", flat=True)
    return sum(wake_parent(run_id) for run_id in list(ids[: parked.BATCH]))


def stop_orphans() -> int:
    """Ask children to stop whose parent has ended without them; how many."""
    # In the words of the index over runs that have not ended: they are few among all there are.
    left = Run.objects.exclude(status__in=_ENDED).filter(
        parent_call__isnull=False, cancel_requested_at__isnull=True, parent__status__in=_ENDED
    )
    parents = list(left.values_list("parent_id", flat=True).distinct()[: parked.BATCH])
    for parent_id in parents:
        stop_children_of(parent_id)
    return len(parents)


def _answered(runs: QuerySet[Run]) -> QuerySet[Run]:
    """Those that wait for children of whom none is at work any more."""
    calls = ToolCall.objects.filter(run=OuterRef("pk"), status=CallStatus.EXECUTING.value)
    live = Run.objects.filter(
        parent=OuterRef("pk"), parent_call__isnull=False, ended_at__isnull=True
    )
    # A run that backs off has no call that executes, and is not meant.
    return runs.filter(Exists(calls), ~Exists(live), status=RunStatus.WAITING.value, waits_for="")


def _worked_seconds(run: Run) -> float:
    """How long the longest of the children that it waited for worked: as long as that, the parent's clock ran too."""
    calls = ToolCall.objects.filter(run=run, status=CallStatus.EXECUTING.value).values("id")
    children = Run.objects.filter(parent=run, parent_call__in=calls, deadline_at__isnull=False)
    return max((_work_of(child) for child in children), default=0.0)


def _work_of(child: Run) -> float:
    # Its deadline has moved by as long as it waited for people; what is left of its life was work.
    if child.ended_at is None or child.deadline_at is None:
        return 0.0
    left = (child.deadline_at - child.ended_at).total_seconds()
    return max(0.0, child.deadline_s - left)


def _tell_cancelling(run: Run, actor: Actor) -> int:
    name = ports.redactor().text(actor.name)
    return transitions.tell(
        run.id, [NewEvent("progress", {"message": f"Cancelling: asked by {name}"})]
    )

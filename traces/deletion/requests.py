"""Asking for a deletion: one transaction checks, hides and says so in the audit; rows go afterwards."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from django.db.models import Q
from django.db.models.functions import Now

from runtime_core import ports
from runtime_core.errors import Held, NotFound, PartOfRun
from runtime_core.forget import forgetting
from runtime_core.models import Interrupt, Run, Thread
from runtime_core.values import Actor, Audit
from traces import holds
from traces.audit.erasure import erase_of_runs
from traces.deletion.purge import delete_at_once
from traces.deletion.reach import Reach, locked
from traces.exports.requests import withdraw
from traces.models import DeletionRequest, LegalHold

Kind = DeletionRequest.Kind


class Door:
    """What the runtime's own addresses ask through."""

    def ask(self, actor: Actor, kind: str, object_id: uuid.UUID, reason: str) -> dict[str, Any]:
        """Hide a run or thread with all that derives from it; its rows go in the background."""
        if kind == Kind.RUN:
            return as_json(delete_run(actor, object_id, reason))
        return as_json(delete_thread(actor, object_id, reason))


def delete_run(actor: Actor, run_id: uuid.UUID, reason: str = "") -> DeletionRequest:
    """Hide a run that has ended, with all that derives from it. NotFound, PartOfRun, NotEnded, Held."""
    run = Run.objects.filter(id=run_id).first()
    if run is None:
        raise NotFound("There is no such run, or you may not see it.")
    if run.is_child and run.parent_id:
        raise PartOfRun(
            f"It answers run {run.parent_id}, which holds its result: delete that one.",
            run_id=str(run.parent_id),
        )
    return ask(actor, _request(Kind.RUN, run), reason, [run_id], [])


def delete_thread(actor: Actor, thread_id: uuid.UUID, reason: str = "") -> DeletionRequest:
    """Hide a thread with its runs and all that derives from them. NotFound, NotEnded, Held."""
    thread = Thread.objects.filter(id=thread_id).first()
    if thread is None:
        raise NotFound("There is no such thread, or you may not see it.")
    return ask(actor, _request(Kind.THREAD, thread), reason, [], [thread_id])


def as_json(request: DeletionRequest) -> dict[str, Any]:
    """The request as the API gives it."""
    return {
        "id": str(request.id),
        "kind": request.kind,
        "object_id": request.object_id,
        "state": request.state,
        "runs": request.run_count,
        "counts": request.counts,
        "receipt": request.receipt,
        "created_at": request.created_at.isoformat(),
        "ended_at": request.ended_at.isoformat() if request.ended_at else None,
    }


def _request(kind: str, row: Run | Thread) -> DeletionRequest:
    return DeletionRequest(kind=kind, object_id=str(row.id), project_id=row.project_id)


def ask(
    actor: Actor,
    request: DeletionRequest,
    reason: str,
    runs: list[uuid.UUID],
    threads: list[uuid.UUID],
    also: Callable[[DeletionRequest], None] | None = None,
) -> DeletionRequest:
    """Check, hide and record in one commit, with what else is to happen in it; rows go afterwards."""
    request.requested_by_id = actor.user_id
    request.reason = ports.redactor().text(reason)[:300]
    entry = Audit(
        "data.deletion_requested",
        actor,
        request.kind,
        request.object_id,
        project_id=request.project_id,
        data={"request": str(request.id), "reason": request.reason},
    )
    with forgetting([entry]):
        holds.guard()
        if also is not None:
            require_no_hold_on(Q(kind="user", object_id=request.object_id))
        reach = locked(runs, threads)
        if also is None and not reach.runs and not reach.threads:
            raise NotFound("It has been deleted meanwhile.")
        require_no_hold(reach)
        request.run_count = len(reach.runs)
        request.runs, request.threads = sorted(reach.runs), sorted(reach.threads)
        delete_at_once(request)
        if also is not None:
            also(request)
        request.save(force_insert=True)
        hide(reach)
        withdraw(Run.everything.filter(id__in=reach.runs).values_list("project_id", flat=True))
        erase_of_runs(actor, request, reach.runs, reach.threads)
    request.refresh_from_db()
    return request


def hide(reach: Reach) -> None:
    """From this commit on nobody finds them: their managers leave them out of every query."""
    Interrupt.objects.filter(run__in=reach.runs).update(deleted_at=Now())
    Run.objects.filter(id__in=reach.runs).update(deleted_at=Now())
    Thread.objects.filter(id__in=reach.threads).update(deleted_at=Now())


def require_no_hold(reach: Reach) -> None:
    """Pass if no legal hold keeps any of these; else Held."""
    held = holds.held_among(reach.runs)
    if held:
        raise Held(
            f"A legal hold keeps run {min(held)}; nothing was deleted.", run_id=str(min(held))
        )
    # A thread without a run is held by what names it, its owner or its project.
    threads = Thread.objects.filter(id__in=reach.threads)
    for thread in threads:
        names = Q(kind="thread", object_id=str(thread.id))
        names |= Q(kind="user", object_id=str(thread.created_by_id))
        names |= Q(kind="project", object_id=str(thread.project_id))
        require_no_hold_on(names)


def require_no_hold_on(names: Q) -> None:
    """Pass if no hold in force is one of these; else Held."""
    hold = LegalHold.objects.filter(names, released_at=None).first()
    if hold is not None:
        raise Held(f"A legal hold keeps {hold.kind} {hold.object_id}; nothing was deleted.")

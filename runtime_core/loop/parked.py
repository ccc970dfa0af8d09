"""Ends a cancelled run that nobody holds: its interrupts, its calls and the run itself, in one transaction."""

from __future__ import annotations

import uuid

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from runtime_core import ports, transitions
from runtime_core.checkpoints import store
from runtime_core.events.publish import announce
from runtime_core.gateway import messages as wire
from runtime_core.loop.continuation import ended_audit
from runtime_core.models import Interrupt, Message, Run, ToolCall
from runtime_core.sanitize import canonical
from runtime_core.states import PARKED, CallStatus, CheckpointReason, InterruptStatus, RunStatus
from runtime_core.tools import ledger
from runtime_core.tracing import ended_run_span, settled_span
from runtime_core.transactions import one_commit
from runtime_core.values import SYSTEM, Audit

BATCH = 100
_TEXT = "Not executed: the run was cancelled."
_UNKNOWN = "Interrupted while it ran: it is not known whether it happened."
_ENDED = [s.value for s in CallStatus if s.ended] + [CallStatus.UNKNOWN.value]


def cancel(run: Run) -> int:
    """End the run, whose row the caller has locked, in the caller's transaction; its last_seq."""
    withdraw(run)
    _close_calls(run)
    _answer_calls(run)
    ports.audit().record([ended_audit(run, RunStatus.CANCELLED)])
    told = store.mark(run.id, CheckpointReason.END)
    end_trace(run, RunStatus.CANCELLED)
    return transitions.move(run.id, RunStatus.CANCELLED, "cancel", events=told)


def finish_cancel(run_id: uuid.UUID) -> bool:
    """Cancel the run if that was asked for while its worker was about to let it go; True if it was so."""
    with one_commit("finish_cancel"):
        run = Run.objects.select_for_update().get(id=run_id)
        if run.cancel_requested_at is None or run.state not in PARKED:
            return False
        if run.live_children.exists():
            return False  # the last of them to end comes back here
        seq = cancel(run)
    announce(run.id, seq, run.project_id, inbox=True)
    return True


def finish_cancels() -> int:
    """The same for every run whose worker was lost before it could; how many."""
    parked = [s.value for s in PARKED]
    children = Run.objects.filter(
        parent=OuterRef("pk"), parent_call__isnull=False, ended_at__isnull=True
    )
    left = Run.objects.filter(
        ~Exists(children), status__in=parked, cancel_requested_at__isnull=False
    )
    return sum(finish_cancel(run_id) for run_id in list(left.values_list("id", flat=True)[:BATCH]))


def withdraw(run: Run) -> None:
    """Nobody needs to decide anything of this run any more."""
    opened = list(
        Interrupt.objects.select_for_update().filter(run=run, status=InterruptStatus.OPEN.value)
    )
    for interrupt in opened:
        interrupt.status = InterruptStatus.WITHDRAWN.value
        interrupt.decided_at = timezone.now()
        interrupt.save(update_fields=["status", "decided_at"])
    if opened:
        transaction.on_commit(lambda: ports.spans().write([settled_span(one) for one in opened]))
        ports.audit().record([_withdrawn(interrupt) for interrupt in opened])


def end_trace(run: Run, status: RunStatus) -> None:
    """Close the run's own span once this transaction stands: no worker will."""
    transaction.on_commit(lambda: ports.spans().write([ended_run_span(run, status)]))


def _withdrawn(interrupt: Interrupt) -> Audit:
    return Audit(
        "interrupt.withdrawn",
        SYSTEM,
        "interrupt",
        str(interrupt.id),
        project_id=interrupt.project_id,
        run_id=interrupt.run_id,
        data={"kind": interrupt.kind, "version": interrupt.version, "digest": interrupt.digest},
    )


def _close_calls(run: Run) -> None:
    opened = ToolCall.objects.filter(run=run).exclude(status__in=_ENDED)
    lost = opened.filter(status=CallStatus.EXECUTING.value).exclude(
        effect__in=["read", "idempotent"]
    )
    lost.update(status=CallStatus.UNKNOWN.value, ended_at=timezone.now(), result_redacted=_UNKNOWN)
    for call in opened:
        call.status = CallStatus.CANCELLED.value
        call.ended_at = timezone.now()
        call.result_text = call.result_redacted = _TEXT
        call.save(update_fields=["status", "ended_at", "result_text", "result_redacted"])


def _answer_calls(run: Run) -> None:
    """Results for the last turn's unanswered calls, stored once, so that the thread can be used again."""
    last = Message.objects.filter(run=run).order_by("-position").first()
    calls = [c for c in ledger.load(run.id) if last is not None and c.step == last.step]
    if last is None or not calls:
        return
    body = canonical(wire.dump(wire.tool_results(ledger.told(call) for call in calls)))  # type: ignore[misc]
    Message.objects.create(
        thread_id=run.thread_id, position=last.position + 1, run=run, step=run.next_step, body=body
    )

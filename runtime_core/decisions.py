"""What a decision does to an interrupt, its call and its run: the runtime's half, in the caller's transaction.

The caller (the side that decides) checks who may decide and records who did; here is checked that what was decided on
is what is there now. Lock order: run, then interrupt, then call.
"""

from __future__ import annotations

import datetime as dt
import json
import uuid
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import BooleanField, ExpressionWrapper, Q, Value
from django.db.models.functions import Now
from django.utils import timezone

from runtime_core import ports, scope, states, transitions
from runtime_core.checkpoints import store as checkpoints
from runtime_core.errors import (
    AlreadyDecided,
    Expired,
    InvalidPayload,
    NotFound,
    StaleVersion,
    Withdrawn,
)
from runtime_core.events.publish import announce
from runtime_core.limits import limits
from runtime_core.models import Interrupt, Run, ToolCall
from runtime_core.sanitize import canonical, clip, storable, storable_text
from runtime_core.scheduling.wake import wake_run
from runtime_core.states import (
    CallStatus,
    CheckpointReason,
    InterruptKind,
    InterruptStatus,
    RunStatus,
)
from runtime_core.tools import ledger, registry
from runtime_core.tools.builtin.question import MODEL_FAILED
from runtime_core.tracing import decision_span, settled_span
from runtime_core.transactions import one_commit
from runtime_core.transitions import NewEvent
from runtime_core.values import SYSTEM, Actor, Audit, Json

EXPIRED_TEXT = "Nobody decided in time, so it was rejected."


@dataclass(frozen=True, slots=True)
class Locked:
    """An interrupt with its run and call, all three locked until the transaction ends."""

    run: Run
    interrupt: Interrupt
    tool_call: ToolCall
    overdue: bool = False
    undoable: bool = False
    """Both by the database's clock, which alone decides what is too late."""


def lock(interrupt_id: uuid.UUID) -> Locked:
    """Lock the run, the interrupt and the call, in this order; NotFound if there is no such interrupt."""
    run_id = Interrupt.objects.filter(id=interrupt_id).values_list("run_id", flat=True).first()
    if run_id is None:
        raise NotFound()
    run = Run.objects.select_for_update().get(id=run_id)
    late = ExpressionWrapper(Q(expires_at__lte=Now()), output_field=BooleanField())
    early = ExpressionWrapper(Q(undo_until__gt=Now()), output_field=BooleanField())
    rows = Interrupt.objects.select_for_update().annotate(late=late, early=early)
    interrupt = rows.get(id=interrupt_id)
    call = ToolCall.objects.select_for_update().get(id=interrupt.tool_call_id)
    return Locked(run, interrupt, call, interrupt.late, bool(interrupt.early))


def check_current(locked: Locked, version: int, digest: str) -> None:
    """Pass if the interrupt is open and is still what the person saw; else the error that says what happened."""
    interrupt = locked.interrupt
    match InterruptStatus(interrupt.status):
        case InterruptStatus.OPEN:
            pass
        case InterruptStatus.WITHDRAWN:
            raise Withdrawn()
        case InterruptStatus.EXPIRED:
            raise Expired()
        case _:
            raise AlreadyDecided()
    if locked.overdue:
        raise Expired()
    if locked.run.status != RunStatus.INTERRUPTED.value:
        raise Withdrawn("The run is not waiting for a decision any more; nothing was done.")
    if version != interrupt.version or digest != interrupt.digest:
        raise StaleVersion()


@scope.of_run(lambda locked, **_: locked.run)
def settle(
    locked: Locked,
    *,
    actor: Actor,
    action: str,
    response: Json = None,
    reason: str = "",
    compensate: bool = False,
    undo_seconds: int = 0,
) -> Interrupt:
    """Record the outcome on the interrupt and its call, tell it, and re-queue the run if nothing else is open.

    Nothing of it takes effect before `undo_seconds` are over. An edit has changed the arguments already. With
    `compensate`, what the run did is taken back once it has stopped.
    InvalidPayload names the field that does not fit; nothing is changed then.
    """
    interrupt, call = locked.interrupt, locked.tool_call
    kind = InterruptKind(interrupt.kind)
    if action not in states.ALLOWED_ACTIONS[kind]:
        allowed = ", ".join(states.ALLOWED_ACTIONS[kind])
        raise InvalidPayload(
            f"action: {action!r} does not fit this request; it takes {allowed}.", field="action"
        )
    reason = clip(storable_text(reason.strip()), 4_000)[0]
    match action:
        case "approve" | "edit":
            _approve(call)
        case "respond":
            _respond(call, kind, response)
        case _:
            _reject(call, kind, actor, reason)
    call.save()
    if compensate:
        Run.objects.filter(id=locked.run.id).update(compensation="due")
    comment = reason or (response if isinstance(response, str) else "")
    status = states.SETTLED_BY_ACTION[action]
    if status is InterruptStatus.APPROVED and "edited_args" in interrupt.detail:
        # Somebody proposed other arguments, and these are what was approved.
        status = InterruptStatus.EDITED
    if undo_seconds:
        interrupt.undo_until = Now() + Value(dt.timedelta(seconds=undo_seconds))
    return _close(locked, status, actor, action, comment)


def wake(run: Run) -> None:
    """Call after the commit: tell those who watch. A worker has been told first, if the run is due."""
    fresh = Run.objects.only("last_seq", "project_id").get(id=run.id)
    announce(run.id, fresh.last_seq, fresh.project_id, inbox=True)


def shown(interrupt: Interrupt) -> dict[str, Any]:
    """What someone allowed to decide sees: the exact arguments, the schema, and a preview of the effect."""
    call = interrupt.tool_call
    tool = registry().get(call.tool)
    args = _args_of(call)
    return {
        "tool": call.tool,
        "args": args,
        "args_text": call.args_text,
        "schema": dict(tool.spec.schema) if tool else {},
        "description": tool.spec.description if tool else "",
    }


def expire_due() -> int:
    """Reject, as the system, what nobody decided in time; how many. Each in a transaction of its own."""
    due = Interrupt.objects.filter(
        status=InterruptStatus.OPEN.value, expires_at__lte=Now()
    ).order_by("expires_at")
    return sum(
        _expire(interrupt_id) for interrupt_id in list(due.values_list("id", flat=True)[:200])
    )


def _approve(call: ToolCall) -> None:
    call.status = CallStatus.APPROVED.value
    call.error_code = ""
    call.result_text = None


def _respond(call: ToolCall, kind: InterruptKind, response: Json) -> None:
    """A person's answer becomes what the model is told; the tool does not run."""
    if response is None or (isinstance(response, str) and not response.strip()):
        raise InvalidPayload("response: write an answer.", field="response")
    value, cut = ledger.bounded(response)
    if cut:
        raise InvalidPayload(
            f"response: at most {limits().tool_result_bytes} bytes, please.", field="response"
        )
    choices = _args_of(call).get("choices", []) if call.tool == MODEL_FAILED else []
    if choices and response not in choices:
        raise InvalidPayload(f"response: one of {', '.join(choices)}.", field="response")
    skipped = kind is InterruptKind.TOOL_APPROVAL
    _end_call(call, CallStatus.SKIPPED if skipped else CallStatus.SUCCEEDED, value)


def _reject(call: ToolCall, kind: InterruptKind, actor: Actor, reason: str) -> None:
    if not reason:
        raise InvalidPayload("reason: say why; the agent sees this text.", field="reason")
    if kind is InterruptKind.OUTCOME_UNKNOWN:
        _end_call(call, CallStatus.CANCELLED, f"Outcome unknown; stopped: {reason}")
        call.error_code = "outcome_unknown"
        return
    who = "the system" if actor.is_system else "an approver"
    _end_call(call, CallStatus.REJECTED, f"Rejected by {who}: {reason}")


def _end_call(call: ToolCall, status: CallStatus, value: Json) -> None:
    clean = storable(value)
    call.status = status.value
    call.result_text = clean if isinstance(clean, str) else canonical(clean)
    gate = ports.redactor()
    says_the_tool = status in (CallStatus.SKIPPED, CallStatus.SUCCEEDED)
    done = gate.of_tool(call.tool, clean) if says_the_tool else gate.redact(clean)
    call.result_redacted = done.value
    call.ended_at = timezone.now()


def _close(
    locked: Locked, status: InterruptStatus, actor: Actor, action: str, comment: str
) -> Interrupt:
    interrupt, run = locked.interrupt, locked.run
    interrupt.status = status.value
    interrupt.action = action
    interrupt.decided_at = timezone.now()
    interrupt.decided_by_id = actor.user_id
    interrupt.comment = ports.redactor().text(storable_text(comment))
    interrupt.save()
    interrupt.refresh_from_db(fields=["undo_until"])
    word = {"approve": "approved", "edit": "changed and approved", "respond": "answered"}.get(
        action, "rejected"
    )
    name = ports.redactor().text(actor.name)
    events = [
        NewEvent(
            "progress",
            {"message": f"{name} {word} {locked.tool_call.tool}", "interrupt": str(interrupt.id)},
        )
    ]
    if locked.tool_call.ended_at is not None:
        events.append(_result_event(locked.tool_call))
    still_open = Interrupt.objects.filter(run=run, status=InterruptStatus.OPEN.value).exists()
    goes_on = not still_open and run.status == RunStatus.INTERRUPTED.value
    if goes_on:
        events += checkpoints.mark(run.id, CheckpointReason.DECIDED)
    transitions.tell(run.id, events)
    if goes_on:
        cause = "expired" if status is InterruptStatus.EXPIRED else "decided"
        transitions.move(run.id, RunStatus.PENDING, cause)
        wake_run(run.id)
    transaction.on_commit(lambda: _tell_trace(interrupt))
    return interrupt


def _tell_trace(interrupt: Interrupt) -> None:
    ports.spans().write([settled_span(interrupt), decision_span(interrupt)])


def _result_event(call: ToolCall) -> NewEvent:
    return NewEvent(
        "tool_call_result",
        {
            "call_id": call.call_id,
            "tool": call.tool,
            "status": call.status,
            "result": call.result_redacted,
            "truncated": False,
        },
    )


def _expire(interrupt_id: uuid.UUID) -> bool:
    with one_commit("expire"):
        locked = lock(interrupt_id)
        interrupt = locked.interrupt
        if interrupt.status != InterruptStatus.OPEN.value or not locked.overdue:
            return False
        if locked.run.status != RunStatus.INTERRUPTED.value:
            return False
        if ports.overdue().prolong(locked):
            transaction.on_commit(lambda: wake(locked.run))
            return False
        _reject(locked.tool_call, InterruptKind(interrupt.kind), SYSTEM, EXPIRED_TEXT)
        locked.tool_call.save()
        _close(locked, InterruptStatus.EXPIRED, SYSTEM, "", EXPIRED_TEXT)
        ports.audit().record([_audit("interrupt.expired", SYSTEM, interrupt)])
    wake(locked.run)
    return True


def _audit(action: str, actor: Actor, interrupt: Interrupt) -> Audit:
    return Audit(
        action,
        actor,
        "interrupt",
        str(interrupt.id),
        project_id=interrupt.project_id,
        run_id=interrupt.run_id,
        data={"kind": interrupt.kind, "version": interrupt.version, "digest": interrupt.digest},
    )


def _args_of(call: ToolCall) -> Json:
    try:
        return json.loads(call.args_text)
    except ValueError:
        return {}

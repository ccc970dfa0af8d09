"""What changes an interrupt without settling it: other arguments, other terms, a decision taken back.

Each makes the next version, so that whatever was decided on the one before counts no more. In the caller's
transaction, with run, interrupt and call locked by `decisions.lock`.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.db.models import F, Value
from django.db.models.functions import Least, Now

from runtime_core import new_run, ports, scope, transitions
from runtime_core.decisions import Locked
from runtime_core.errors import (
    InvalidArguments,
    InvalidPayload,
    StaleVersion,
    UndoClosed,
    Withdrawn,
)
from runtime_core.loop.restore import rules_of
from runtime_core.models import ToolCall
from runtime_core.sanitize import canonical
from runtime_core.states import CallStatus, InterruptKind, InterruptStatus, RunStatus
from runtime_core.tools import gate, ledger, permission, registry, schema
from runtime_core.transitions import NewEvent
from runtime_core.values import Actor, ApprovalTerms, Json, Verdict


@scope.of_run(lambda locked, *_, **__: locked.run)
def change(locked: Locked, actor: Actor, args: dict[str, Json]) -> None:
    """These arguments instead, as the next version; InvalidPayload if tool or permissions refuse them."""
    interrupt, call = locked.interrupt, locked.tool_call
    text = canonical(args)
    _check(locked, text)
    _write_args(call, text)
    call.edited = True
    call.save()
    interrupt.version += 1
    interrupt.changed_by_id = actor.user_id
    # Of the tool as it was shown: if it is another one by now, that is asked again before it runs.
    interrupt.digest = gate.digest(call.tool, text, call.schema_digest)
    interrupt.detail = {**interrupt.detail, "edited_args": call.args_redacted}
    interrupt.save()


def rebind(locked: Locked, terms: ApprovalTerms, *, next_version: bool) -> None:
    """Other terms to decide under. A new policy may bring the expiry forward, never put it off."""
    interrupt = locked.interrupt
    interrupt.policy = terms.policy
    interrupt.terms = terms.terms
    interrupt.requester_may = terms.requester_may
    if interrupt.kind != InterruptKind.QUESTION.value:
        interrupt.required = terms.required
    if next_version:
        interrupt.version += 1
    lasts = Value(dt.timedelta(seconds=terms.expires_seconds))
    interrupt.expires_at = Least(F("expires_at"), Now() + lasts)
    interrupt.save()
    interrupt.refresh_from_db(fields=["expires_at"])


def check_undoable(locked: Locked, version: int) -> None:
    """Pass if what was decided on this version may still be taken back; else the error that says why not.

    While the interrupt is open there was no effect; afterwards the database's clock decides.
    """
    interrupt = locked.interrupt
    if interrupt.status == InterruptStatus.WITHDRAWN.value:
        raise Withdrawn()
    if version != interrupt.version:
        raise StaleVersion()
    if interrupt.status != InterruptStatus.OPEN.value and not locked.undoable:
        raise UndoClosed()
    if locked.run.status not in _UNDONE_FROM:
        raise UndoClosed("The run has gone on already; the decision can no longer be taken back.")


@scope.of_run(lambda locked, *_, **__: locked.run)
def reopen(locked: Locked, args_text: str, *, editor_id: int | None, is_edited: bool) -> None:
    """The interrupt again, as the next version with these arguments; only after `check_undoable`."""
    interrupt, call, run = locked.interrupt, locked.tool_call, locked.run
    if args_text != call.args_text:
        _write_args(call, args_text)
    if not is_edited:
        interrupt.detail = {k: v for k, v in interrupt.detail.items() if k != "edited_args"}
    call.edited = is_edited
    _reset(call, InterruptKind(interrupt.kind), interrupt.reason)
    call.save()
    interrupt.version += 1
    interrupt.changed_by_id = editor_id
    interrupt.status = InterruptStatus.OPEN.value
    interrupt.digest = gate.digest(call.tool, call.args_text, call.schema_digest)
    interrupt.action = interrupt.comment = ""
    interrupt.decided_at = interrupt.decided_by = interrupt.undo_until = None
    interrupt.save()
    new_run.want_compensation(run)
    if run.status != RunStatus.INTERRUPTED.value:
        transitions.move(run.id, RunStatus.INTERRUPTED, "undone")


@scope.of_run(lambda locked, *_, **__: locked.run)
def tell(locked: Locked, message: str) -> None:
    """Say what happened among the run's events."""
    data: dict[str, Json] = {
        "message": ports.redactor().text(message),
        "interrupt": str(locked.interrupt.id),
    }
    transitions.tell(locked.run.id, [NewEvent("progress", data)])


_UNDONE_FROM = (RunStatus.INTERRUPTED.value, RunStatus.PENDING.value, RunStatus.PAUSED.value)


def _check(locked: Locked, text: str) -> None:
    call = locked.tool_call
    tool = registry().get(call.tool)
    if tool is None:
        raise InvalidPayload(
            f"The tool {call.tool} no longer exists; reject the request.", field="action"
        )
    try:
        args = schema.parse(tool, text)
    except InvalidArguments as error:
        raise InvalidPayload(f"args: {error.message}", field="args") from error
    rules = rules_of(locked.run)
    verdict = permission.decide(rules, tool.spec, args)
    if verdict.verdict is not Verdict.DENY:
        return
    was = permission.decide(rules, tool.spec, ledger.args_in(call.args_text))
    # What the permissions leave open is refused by default, but not because of this change.
    if verdict.rule_id is not None or was.verdict is not Verdict.DENY:
        reason = ports.redactor().text(verdict.reason)
        raise InvalidPayload(f"args: these arguments are not permitted. {reason}", field="args")


def _write_args(call: ToolCall, text: str) -> None:
    call.args_text = text
    call.args_digest = ledger.digest_of(text)
    call.args_redacted = ledger.redacted_args(call.tool, text)
    call.idempotency_key = ledger.key_of(call.run_id, call.step, call.position, text)


def _reset(call: ToolCall, kind: InterruptKind, reason: str) -> None:
    """The call as it was when it was asked about."""
    unknown = kind is InterruptKind.OUTCOME_UNKNOWN
    drifted = kind is InterruptKind.DRIFT
    state: dict[str, Any] = {
        "status": (CallStatus.UNKNOWN if unknown else CallStatus.AWAITING_APPROVAL).value,
        "error_code": "outcome_unknown" if unknown else "drift" if drifted else "",
        "result_text": reason if drifted else None,
        "result_redacted": None,
        "ended_at": None,
    }
    for name, value in state.items():
        setattr(call, name, value)

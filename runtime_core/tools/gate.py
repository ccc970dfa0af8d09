"""Between a model's wish and a tool: checks every call, and asks a person where the permissions say so.

`authorise` runs when the model proposes; `refuse_or_drift` runs again right before an approved call is executed.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from runtime_core import ports
from runtime_core.errors import InvalidArguments
from runtime_core.ids import new_id
from runtime_core.limits import limits
from runtime_core.models import Interrupt
from runtime_core.sanitize import canonical, storable_text
from runtime_core.states import CallStatus, InterruptKind
from runtime_core.tools import ledger, permission
from runtime_core.tools.ledger import CallRecord
from runtime_core.tools.registry import Tool
from runtime_core.tools.schema import parse
from runtime_core.values import ApprovalTerms, Effect, Json, ProposedCall, Risk, Verdict


def authorise(
    proposed: Sequence[ProposedCall],
    *,
    run_id: uuid.UUID,
    step: int,
    tools: Mapping[str, Tool],
    rules: Sequence[permission.Rule],
) -> list[CallRecord]:
    """A ledger record for each call: failed (told to the model), rejected, awaiting approval, or approved to run."""
    records: list[CallRecord] = []
    for position, call in enumerate(proposed):
        key = ledger.key_of(run_id, step, position, call.args_text)
        record = CallRecord(
            id=new_id(),
            step=step,
            position=position,
            call_id=call.call_id,
            tool=call.tool,
            effect=Effect.READ,
            risk=Risk.LOW,
            status=CallStatus.PROPOSED,
            args_text=call.args_text,
            schema_digest="",
            idempotency_key=key,
            args_redacted=ledger.redacted_args(call.tool, call.args_text),
        )
        record = _judge(run_id, record, tools.get(call.tool), tools, rules)
        records.append(_ask_if_repeated(record, tools.get(call.tool), run_id, records))
    return records


def _ask_if_repeated(
    record: CallRecord, tool: Tool | None, run_id: uuid.UUID, before: Sequence[CallRecord]
) -> CallRecord:
    """A call that may run, and whose equal has run just now or may have run, asks a person instead of acting again."""
    if tool is None or record.status not in (CallStatus.APPROVED, CallStatus.AWAITING_APPROVAL):
        return record
    if record.status is CallStatus.APPROVED and ledger.was_in_doubt(run_id, record):
        said = "Nobody could tell whether the same call happened before."
        return _asks(record, said)
    if not tool.dedupe_s:
        return record
    if any(ledger.is_same(record, other) and not other.status.ended for other in before):
        said = "The same call is asked for twice at once."
    else:
        ago = ledger.seconds_since_same(run_id, record, tool.dedupe_s)
        if ago is None:
            return record
        said = f"The same call was made {ago:.0f} s ago."
    if record.status is CallStatus.AWAITING_APPROVAL:
        said = f"{said} {record.verdict_reason}"
    return _asks(record, said)


def _asks(record: CallRecord, why: str) -> CallRecord:
    return record.evolve(status=CallStatus.AWAITING_APPROVAL, grant=None, verdict_reason=why)


def _judge(
    run_id: uuid.UUID,
    record: CallRecord,
    tool: Tool | None,
    tools: Mapping[str, Tool],
    rules: Sequence[permission.Rule],
) -> CallRecord:
    if record.position >= limits().tool_calls_per_turn:
        return _failed(record, "too_many_calls", "Too many tool calls in one turn; ask for fewer.")
    if tool is None:
        known = ", ".join(sorted(tools)) or "none"
        # A name that the model made up may be anything, a secret included, and is shown everywhere.
        name = ports.redactor().text(storable_text(record.tool))[:80]
        record = record.evolve(tool=name)
        return _failed(record, "unknown_tool", f"There is no tool {name!r}; there are: {known}.")
    record = record.evolve(
        effect=tool.spec.effect, risk=tool.spec.risk, schema_digest=tool.spec.digest
    )
    try:
        args = parse(tool, record.args_text)
    except InvalidArguments as error:
        return _failed(record, error.code, error.message)
    if tool.asks:
        return record.evolve(
            status=CallStatus.AWAITING_APPROVAL, verdict_reason="The agent asks a question."
        )
    decision = permission.decide(rules, tool.spec, args)
    record = record.evolve(verdict_reason=ports.redactor().text(decision.reason))
    match decision.verdict:
        case Verdict.ALLOW:
            return record.evolve(status=CallStatus.APPROVED)
        case Verdict.ASK:
            return _asked_unless_covered(run_id, record, tool, args)
        case Verdict.DENY:
            return _ended(
                record, CallStatus.REJECTED, "not_permitted", f"Not permitted: {decision.reason}"
            )


def _asked_unless_covered(
    run_id: uuid.UUID, record: CallRecord, tool: Tool, args: Mapping[str, Json]
) -> CallRecord:
    covered = ports.grants().covering(run_id, tool.spec, args)
    if covered is None:
        return record.evolve(status=CallStatus.AWAITING_APPROVAL)
    reason = ports.redactor().text(covered.reason)
    return record.evolve(status=CallStatus.APPROVED, grant=covered.grant_id, verdict_reason=reason)


def refuse_or_drift(
    call: CallRecord,
    tool: Tool | None,
    rules: Sequence[permission.Rule],
    was_asked: Interrupt | None,
) -> tuple[str, str] | None:
    """Why an approved call may not run now: ('rejected', reason) or ('drift', reason); None if it may."""
    if tool is None:
        return "rejected", f"The tool {call.tool} no longer exists."
    if tool.spec.digest != call.schema_digest:
        return "drift", f"The definition of {call.tool} changed after it was proposed."
    try:
        args = parse(tool, call.args_text)
    except InvalidArguments as error:
        return "rejected", error.message
    if permission.decide(rules, tool.spec, args).verdict is Verdict.DENY:
        return "rejected", "A permission now denies it."
    if was_asked is None:
        ended = ports.grants().spend(call.grant, call.id, tool.spec, args) if call.grant else None
        return ("drift", ended) if ended else None
    if was_asked.digest != digest(call.tool, call.args_text, call.schema_digest):
        return "drift", "It is not what was approved."
    revoked = ports.decision_guard().revoked(was_asked.id)
    return ("drift", revoked) if revoked else None


def digest(tool: str, args_text: str, schema_digest: str) -> str:
    """What a decision is bound to: the tool, its definition and the exact text of its arguments."""
    return ledger.digest_of(canonical([tool, schema_digest, args_text]))


def interrupt_row(
    call: CallRecord,
    kind: InterruptKind,
    reason: str,
    terms: ApprovalTerms,
    bound: dict[str, Json],
) -> dict[str, Json]:
    """An interrupt about this call, as `sql.commit_step` inserts it."""
    return {
        "id": str(new_id()),
        "tool_call": str(call.id),
        "kind": kind.value,
        "digest": digest(call.tool, call.args_text, call.schema_digest),
        "risk": call.risk.value,
        "reason": ports.redactor().text(reason)[:300],
        # A question is answered by one person, whoever that is.
        "required": 1 if kind is InterruptKind.QUESTION else terms.required,
        "policy": str(terms.policy) if terms.policy else None,
        "terms": terms.terms,
        "requester_may": terms.requester_may,
        "bound": bound,
        "detail": _detail(call, kind),
        "expires_s": terms.expires_seconds,
    }


def _detail(call: CallRecord, kind: InterruptKind) -> dict[str, Any]:
    detail: dict[str, Any] = {"tool": call.tool, "args": call.args_redacted}
    if kind is InterruptKind.OUTCOME_UNKNOWN:
        detail["attempts"] = call.attempts
        detail["idempotency_key"] = call.idempotency_key
        detail["started_at"] = call.started_at.isoformat() if call.started_at else None
        detail["worker"] = call.worker
    return detail


def _failed(record: CallRecord, code: str, message: str) -> CallRecord:
    return _ended(record, CallStatus.FAILED, code, message)


def _ended(record: CallRecord, status: CallStatus, code: str, message: str) -> CallRecord:
    shown = ports.redactor().text(storable_text(message))
    return record.evolve(
        status=status, error_code=code, result_text=storable_text(message), result_redacted=shown
    )

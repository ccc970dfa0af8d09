"""The ledger as values: what is known of each tool call, and the rows that a step commit writes of it.

Keys are stable: the same call of the same run has the same idempotency key in every retry, recovery and attempt.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import hashlib
import itertools
import json
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from django.db.models import DurationField, ExpressionWrapper, F
from django.db.models.functions import Now

from runtime_core import clock, ports, prepared
from runtime_core.errors import OutcomeUnknown, ToolTimedOut
from runtime_core.limits import limits
from runtime_core.models import Run, ToolCall
from runtime_core.prepared import instances
from runtime_core.sanitize import canonical, clip, storable, storable_text
from runtime_core.states import CallStatus
from runtime_core.values import Claim, Effect, Json, Risk, ToolOutcome

# What has had its effect, or may have.
_HAPPENED = [s.value for s in (CallStatus.EXECUTING, CallStatus.SUCCEEDED, CallStatus.UNKNOWN)]
NO_CALL_OF_THE_MODEL = "model_failed"
"""The tool by which the runtime itself asks a person; no turn of the conversation waits for it."""
_LOOKED_AT = 100
# Why nobody could tell whether a call had its effect, whatever a person has said of it since.
_DOUBT = (OutcomeUnknown.code, ToolTimedOut.code)
_MALFORMED = frozenset(("invalid_arguments", "unknown_tool"))
_NOBODY_KNOWS = "Interrupted: it is not known whether it happened."
_A_PERSON_KNOWS = "Its result was lost; a person says that it happened, with this result:"
_LATEST = """
WHERE run_id = %(run)s
    AND step = (SELECT max(step) FROM tool_call WHERE run_id = %(run)s AND tool <> 'model_failed')
ORDER BY position
"""
_APPROVALS = """
SELECT tool_call_id, id FROM interrupt
WHERE run_id = %(run)s AND status IN ('approved', 'edited') ORDER BY decided_at
"""


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One call as the ledger has it. `result_text` is what the model is told, raw."""

    id: uuid.UUID
    step: int
    position: int
    call_id: str
    tool: str
    effect: Effect
    risk: Risk
    status: CallStatus
    args_text: str
    schema_digest: str
    idempotency_key: str
    args_redacted: Json = None
    verdict_reason: str = ""
    error_code: str = ""
    result_text: str | None = None
    result_redacted: Json = None
    truncated: bool = False
    edited: bool = False
    epoch: int = 0
    attempts: int = 0
    worker: str = ""
    """Which worker began it last; kept for what must not happen twice, so that a person can look there."""
    started_at: dt.datetime | None = None
    undoes: uuid.UUID | None = None
    """The call whose effect this one takes back."""
    approval: uuid.UUID | None = None
    """The interrupt by which a person let it run, if one had to."""
    awaits: uuid.UUID | None = field(default=None, compare=False)
    """The run that works on it and has not ended, if it was handed to another agent. Not stored with it."""
    grant: uuid.UUID | None = None
    """The remembered approval by which it may run without being asked about."""

    @property
    def args(self) -> dict[str, Json]:
        """The arguments; empty where the text is not valid (such a call never runs)."""
        return args_in(self.args_text)

    def evolve(self, **changes: object) -> CallRecord:
        """A copy with these fields changed."""
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]

    def begun(self, claim: Claim) -> CallRecord:
        """The record as the intent to run it is stored."""
        return self.evolve(
            status=CallStatus.EXECUTING,
            epoch=claim.epoch,
            attempts=self.attempts + 1,
            worker="" if self.effect.repeatable else claim.worker,
            started_at=clock.now(),
        )

    def ended_with(self, outcome: ToolOutcome) -> CallRecord:
        """The record after its tool ran: raw result for the model, redacted copy for people."""
        result, truncated = bounded(outcome.result)
        return self.evolve(
            status=CallStatus(outcome.status),
            result_text=result if isinstance(result, str) else canonical(result),
            result_redacted=ports.redactor().of_tool(self.tool, result).value,
            truncated=truncated or outcome.truncated,
            error_code=outcome.error_code,
        )


def digest_of(text: str) -> str:
    """SHA-256 in hex over a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def key_of(run_id: uuid.UUID, step: int, position: int, args_text: str) -> str:
    """The idempotency key of a call: never of an attempt or an epoch."""
    return digest_of(f"{run_id}/{step}/{position}/{digest_of(args_text)}")


def bounded(value: Json) -> tuple[Json, bool]:
    """A result that fits the ledger, and whether it had to be cut."""
    clean = storable(value)
    text = clean if isinstance(clean, str) else canonical(clean)
    if len(text.encode()) <= limits().tool_result_bytes:
        return clean, False
    return clip(text, limits().tool_result_bytes)[0], True


def args_in(text: str) -> dict[str, Json]:
    """The arguments in a call's text; empty where it is not valid."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def load(run_id: uuid.UUID) -> list[CallRecord]:
    """The calls of the run's latest model step that asked for any, in their order."""
    rows = instances(ToolCall, _LATEST, run=run_id)
    if not rows:
        return []
    approvals: dict[uuid.UUID, uuid.UUID] = dict(prepared.rows(_APPROVALS, {"run": run_id}))
    return [record_of(row, approvals.get(row.id)) for row in rows]


def result_of(row: ToolCall) -> Json:
    """What a call that succeeded returned, as its tool gave it; None if nobody knows whether it happened."""
    if row.status != CallStatus.SUCCEEDED.value or row.result_text is None:
        return None
    # The redacted copy has the kind of the result: what is a text there was one.
    return row.result_text if isinstance(row.result_redacted, str) else _parsed(row.result_text)


def _parsed(text: str) -> Json:
    try:
        return json.loads(text)
    except ValueError:
        return text


def is_same(call: CallRecord, other: CallRecord) -> bool:
    """True if both call the same tool with equal arguments, however they are written."""
    return call.tool == other.tool and canonical(call.args) == canonical(other.args)


def seconds_since_same(run_id: uuid.UUID, call: CallRecord, within: int) -> float | None:
    """How long ago the thread's last equal call began that happened or may have; None if none did `within` seconds."""
    thread = Run.objects.filter(id=run_id).values("thread_id")
    began = ToolCall.objects.filter(
        run__thread_id__in=thread,
        tool=call.tool,
        undoes=None,
        status__in=_HAPPENED,
        started_at__gte=Now() - dt.timedelta(seconds=within),
    )
    ago = ExpressionWrapper(Now() - F("started_at"), output_field=DurationField())
    for row in began.annotate(ago=ago).order_by("-started_at")[:_LOOKED_AT]:
        if is_same(call, record_of(row)):
            return max(float(row.ago.total_seconds()), 0.0)
    return None


def was_in_doubt(run_id: uuid.UUID, call: CallRecord) -> bool:
    """True if an equal call of the thread may have had its effect and nobody could tell. A repeatable one never is."""
    if call.effect.repeatable:
        return False
    thread = Run.objects.filter(id=run_id).values("thread_id")
    doubted = ToolCall.objects.filter(
        run__thread_id__in=thread, tool=call.tool, error_code__in=_DOUBT, undoes=None
    ).exclude(status=CallStatus.FAILED.value)
    rows = doubted.order_by("-created_at")[:_LOOKED_AT]
    return any(is_same(call, record_of(row)) for row in rows)


def record_of(row: ToolCall, approval: uuid.UUID | None = None) -> CallRecord:
    """A stored row as a value."""
    return CallRecord(
        id=row.id,
        step=row.step,
        position=row.position,
        call_id=row.call_id,
        tool=row.tool,
        effect=Effect(row.effect),
        risk=Risk(row.risk),
        status=CallStatus(row.status),
        args_text=row.args_text,
        schema_digest=row.schema_digest,
        idempotency_key=row.idempotency_key,
        args_redacted=row.args_redacted,
        verdict_reason=row.verdict_reason,
        error_code=row.error_code,
        result_text=row.result_text,
        result_redacted=row.result_redacted,
        truncated=row.truncated,
        edited=row.edited,
        epoch=row.epoch,
        attempts=row.attempts,
        worker=row.worker,
        started_at=row.started_at,
        undoes=row.undoes_id,
        approval=approval,
        grant=row.grant_id,
    )


def new_row(call: CallRecord) -> dict[str, Json]:
    """A proposed call as `sql.commit_step` inserts it."""
    return {
        "id": str(call.id),
        "step": call.step,
        "position": call.position,
        "call_id": storable_text(call.call_id),
        "tool": storable_text(call.tool)[:100],
        "effect": call.effect.value,
        "risk": call.risk.value,
        "status": call.status.value,
        "args_text": storable_text(call.args_text),
        "args_digest": digest_of(call.args_text),
        "args_redacted": call.args_redacted,
        "schema_digest": call.schema_digest,
        "idempotency_key": call.idempotency_key,
        "verdict_reason": call.verdict_reason[:300],
        "grant_id": str(call.grant) if call.grant else None,
        "error_code": call.error_code,
        "result_text": call.result_text,
        "result_redacted": call.result_redacted,
        "truncated": call.truncated,
        "worker": call.worker,
        "ended": call.status.ended,
    }


def changed_row(before: CallRecord, after: CallRecord) -> dict[str, Json]:
    """A changed call as `sql.commit_step` updates it: only if its status is still the one seen."""
    undoes = after.undoes if after.status is CallStatus.SUCCEEDED else None
    return {
        "undoes": str(undoes) if undoes else None,
        "id": str(after.id),
        "seen": before.status.value,
        "status": after.status.value,
        "error_code": after.error_code,
        "result_text": after.result_text,
        "result_redacted": after.result_redacted,
        "truncated": after.truncated,
        "schema_digest": after.schema_digest,
        "effect": after.effect.value,
        "risk": after.risk.value,
        "worker": after.worker,
        "ended": after.status.ended,
    }


def redacted_args(tool: str, args_text: str) -> Json:
    """The arguments as people may see them: a JSON value, or the bounded text where they are none."""
    try:
        value = json.loads(args_text)
    except (ValueError, RecursionError):
        value = clip(storable_text(args_text), 4_000)[0]
    return ports.redactor().of_tool(tool, value).value


def told(call: CallRecord) -> tuple[str, str, str, str]:
    """What the model is told of an ended call: (call id, tool, content, outcome)."""
    text = call.result_text or ""
    match call.status:
        case CallStatus.SUCCEEDED if call.edited:
            note = f"An approver changed the arguments to {call.args_text} before it ran."
            return call.call_id, call.tool, f"{note}\n{text}", "success"
        case CallStatus.SUCCEEDED if call.error_code == OutcomeUnknown.code:
            return call.call_id, call.tool, f"{_A_PERSON_KNOWS} {text}", "success"
        case CallStatus.SUCCEEDED | CallStatus.COMPENSATED:
            return call.call_id, call.tool, text, "success"
        case CallStatus.SKIPPED:
            return call.call_id, call.tool, f"Not run; a person answered instead: {text}", "success"
        case CallStatus.REJECTED:
            return call.call_id, call.tool, text or "Rejected.", "denied"
        case CallStatus.FAILED:
            return call.call_id, call.tool, f"Error: {text}", "failed"
        case CallStatus.UNKNOWN | CallStatus.EXECUTING:
            return call.call_id, call.tool, _NOBODY_KNOWS, "failed"
        case CallStatus.CANCELLED if call.error_code == OutcomeUnknown.code:
            return call.call_id, call.tool, _NOBODY_KNOWS, "failed"
        case _:
            return call.call_id, call.tool, "Not executed: the run was interrupted.", "failed"


def malformed_in_a_row(run_id: uuid.UUID, calls: Sequence[CallRecord]) -> int:
    """How many calls up to and including these could not be read at all, one after the other."""
    if not calls or not all(call.error_code in _MALFORMED for call in calls):
        # The common case costs no query: only calls that are all unreadable can go on a row of them.
        return _leading(call.error_code for call in reversed(calls))
    codes = (
        ToolCall.objects.filter(run_id=run_id)
        .order_by("-step", "-position")
        .values_list("error_code", flat=True)[: limits().malformed_calls_in_a_row]
    )
    return len(calls) + _leading(codes)


def _leading(codes: Iterable[str]) -> int:
    return sum(1 for _ in itertools.takewhile(_MALFORMED.__contains__, codes))

"""The second half of each step's commit: what comes next, announced and intended in the same transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from runtime_core import clock, ports
from runtime_core.engines.port import (
    AskModel,
    AskPeople,
    AwaitChildren,
    Finish,
    GiveUp,
    RunCall,
    RunNode,
    View,
)
from runtime_core.loop import binding, budget, places
from runtime_core.loop.outcome import Ask, Done, Fail, Go, Outcome, Wait, target
from runtime_core.loop.work import Work
from runtime_core.models import Run
from runtime_core.states import CallStatus, InterruptKind, RunStatus
from runtime_core.tools import gate
from runtime_core.tools.builtin.question import MODEL_FAILED
from runtime_core.tools.ledger import CallRecord
from runtime_core.tracing import asked_span
from runtime_core.transitions import NewEvent
from runtime_core.values import SYSTEM, Asked, Audit, Json, Span, Usage

UNTIL_WOKEN = 10 * 365 * 86_400.0
"""Seconds of a wait that no clock ends: children end by themselves, each within its own deadline."""


@dataclass(slots=True)
class Continuation:
    """What follows a step: the outcome, the calls as they are then, and the rows that go with it."""

    outcome: Outcome
    calls: list[CallRecord]
    events: list[NewEvent] = field(default_factory=list)
    interrupts: list[dict[str, Json]] = field(default_factory=list)
    audits: list[Audit] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)

    @property
    def to(self) -> RunStatus:
        return target(self.outcome)[0]

    @property
    def cause(self) -> str:
        return target(self.outcome)[1]

    @property
    def available_in(self) -> float | None:
        return self.outcome.seconds if isinstance(self.outcome, Wait) else None

    @property
    def output(self) -> str | None:
        return self.outcome.output if isinstance(self.outcome, Done) else None

    @property
    def error(self) -> dict[str, Json] | None:
        return error_of(self.outcome) if isinstance(self.outcome, Fail) else None


def follow(
    work: Work,
    calls: Sequence[CallRecord],
    text: str,
    *,
    answered: bool = True,
    begin: bool = True,
    usage: Usage | None = None,
) -> Continuation:
    """What comes next for the run, given its calls as they will be after this commit.

    `begin` False begins and asks nothing more: somebody wants the run to stop, which the loop obeys after the commit.
    Nor is anything begun that the budget has no room for, once this step and its `usage` are counted.
    A call that a person approved, now or for later, is not begun here: that is checked again right before it runs.
    Nor is a step that needs a place of a quota: the place is taken right before it.
    """
    result = Continuation(Go(), list(calls))
    used = work.usage + (usage or Usage())
    has_room = budget.spent(work.limits, work.steps + 1, used) is None
    view = View(answered=answered, text=text, calls=tuple(calls), node=work.node)
    match work.engine.next_move(view):
        case AskModel() if begin and has_room and places.of_model(work) not in places.limited:
            result.events.append(work.open_step("model", work.run.agent.name))
        case RunNode(name) if begin:
            result.events.append(work.open_step("node", name))
        case RunCall(call) if begin and has_room and _may_begin(call):
            executing = call.begun(work.claim)
            result.calls = [executing if c.id == call.id else c for c in calls]
            result.events += begin_events(work, executing)
        case AskPeople() if begin:
            ask(work, result)
        case AwaitChildren():
            result.outcome = Wait(UNTIL_WOKEN, "children")
        case Finish(output):
            result.outcome = Done(output)
        case GiveUp(code, message):
            message = ports.redactor().text(message)
            result.outcome = Fail(code, message, cause="stopped")
            result.events.append(NewEvent("error", error_of(result.outcome)))
        case _:
            pass
    if result.to.ended:
        result.audits.append(ended_audit(work.run, result.to))
    return result


def _may_begin(call: CallRecord) -> bool:
    """True unless something is to be looked at right before the call: its approval, or a place for it."""
    approved = call.status is CallStatus.APPROVED and not (call.approval or call.grant)
    return approved and places.of_tool(call.tool) not in places.limited


def begin_events(work: Work, call: CallRecord) -> list[NewEvent]:
    """What tells that a call starts now."""
    announced = work.open_step("tool", call.tool)
    data = {
        "call_id": call.call_id,
        "tool": call.tool,
        "args": call.args_redacted,
    }
    return [announced, NewEvent("tool_call_start", data, announced.step)]


def ask(work: Work, result: Continuation) -> None:
    """Open an interrupt for every call that needs a person, and leave the run to them."""
    asked = [(call, kind) for call in result.calls if (kind := _kind(work, call))]
    terms = ports.terms_source().of([_asked(work, call) for call, _ in asked])
    for (call, kind), under in zip(asked, terms, strict=True):
        now = binding.bound_now(work, call)
        row = gate.interrupt_row(call, kind, _reason(call, kind), under, now)
        if kind is InterruptKind.DRIFT:
            row["detail"]["changes"] = binding.changes_since(work, call, now, under)
        result.interrupts.append(row)
        result.spans.append(
            asked_span(work.run_id, row, call.tool, call.step, clock.now(), work.claim.epoch)
        )
        data = {"id": row["id"], "kind": kind.value, "tool": call.tool}
        result.events.append(NewEvent("interrupt", data, call.step))
        result.audits.append(
            Audit(
                "interrupt.opened",
                SYSTEM,
                "interrupt",
                row["id"],
                project_id=work.run.project_id,
                run_id=work.run_id,
                data={
                    "kind": kind.value,
                    "tool": call.tool,
                    "risk": call.risk.value,
                    "digest": row["digest"],
                },
            )
        )
    result.outcome = Ask()


def error_of(outcome: Fail) -> dict[str, Json]:
    """An error as events and the run's row show it."""
    return {"code": outcome.code, "message": outcome.message, "retryable": outcome.retryable}


def ended_audit(run: Run, status: RunStatus) -> Audit:
    """The audit entry for the end of a run, for the transaction that ends it."""
    return Audit(
        "run.ended",
        SYSTEM,
        "run",
        str(run.id),
        project_id=run.project_id,
        run_id=run.id,
        data={"status": status.value},
    )


def _asked(work: Work, call: CallRecord) -> Asked:
    tool = work.tools.get(call.tool)
    return Asked(
        project_id=work.run.project_id,
        agent=work.run.agent.name,
        tool=call.tool,
        risk=call.risk,
        args=call.args,
        schema=tool.spec.schema if tool else {},
    )


def _kind(work: Work, call: CallRecord) -> InterruptKind | None:
    if call.status is CallStatus.UNKNOWN:
        return InterruptKind.OUTCOME_UNKNOWN
    if call.status is not CallStatus.AWAITING_APPROVAL:
        return None
    if call.error_code == "drift":
        return InterruptKind.DRIFT
    tool = work.tools.get(call.tool)
    asks = call.tool == MODEL_FAILED or (tool is not None and tool.asks)
    return InterruptKind.QUESTION if asks else InterruptKind.TOOL_APPROVAL


def _reason(call: CallRecord, kind: InterruptKind) -> str:
    match kind:
        case InterruptKind.OUTCOME_UNKNOWN if call.undoes is not None:
            return (
                f"Taking back {call.tool} was started and its result was lost. Nobody knows whether it is taken back, "
                "and that must not happen twice."
            )
        case InterruptKind.OUTCOME_UNKNOWN:
            return (
                f"{call.tool} was started and its result was lost. Nobody knows whether it happened, "
                "and it must not happen twice."
            )
        case InterruptKind.DRIFT:
            return ports.redactor().text(call.result_text or "What was approved has changed.")
        case _:
            return call.verdict_reason

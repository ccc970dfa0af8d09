"""How a run's work ends before its time: stopped, failed or parked, with a conversation that is whole."""

from __future__ import annotations

from collections.abc import Sequence

from runtime_core import ports
from runtime_core.checkpoints import snapshot
from runtime_core.gateway import messages as wire
from runtime_core.loop import stopping
from runtime_core.loop.continuation import UNTIL_WOKEN, ended_audit, error_of
from runtime_core.loop.outcome import Fail, Outcome, Stop, Wait, checkpoint_reason, target
from runtime_core.loop.work import Work, checkpoint_event
from runtime_core.states import RUN_MOVES, CallStatus, CheckpointReason, RunStatus
from runtime_core.tools import ledger
from runtime_core.tools.ledger import CallRecord
from runtime_core.transitions import NewEvent, StepCommit
from runtime_core.values import Json, ToolOutcome, Usage

_OPEN = (CallStatus.PROPOSED, CallStatus.AWAITING_APPROVAL, CallStatus.APPROVED)


def end(
    work: Work,
    outcome: Outcome,
    *,
    steps: Sequence[dict[str, Json]] = (),
    events: Sequence[NewEvent] = (),
    calls: Sequence[CallRecord] | None = None,
    usage: Usage | None = None,
    model_failures: int | None = None,
) -> None:
    """Commit the end of this worker's hold on the run: `Fail`, `Wait`, or a `Stop` that leads to a status.

    Where the run ends for good, its unanswered calls get results, so that the thread can be used again.
    """
    outcome = _children_first(work, outcome)
    to, cause = target(outcome)
    after = list(work.calls if calls is None else calls)
    messages: list[dict[str, Json]] = []
    bodies: list[str] = []
    if to.ended:
        after = [closed(call) for call in after] if work.view.answered else after
        if not _must_be_asked(to, after):
            messages, bodies = _closing_messages(work, after)
    reason = checkpoint_reason(outcome, CheckpointReason.END)
    rolling = snapshot.extend(work.rolling, bodies)
    point = work.point(reason, work.next_step, steps=len(steps), added=len(bodies), rolling=rolling)
    events = [*events, checkpoint_event(point)]
    if isinstance(outcome, Fail):
        events.append(NewEvent("error", error_of(outcome)))
    before = {call.id: call for call in work.calls}
    changed = [c for c in after if c != before[c.id]]
    work.commit(
        StepCommit(
            to=to,
            cause=cause,
            next_step=work.next_step,
            steps=steps,
            messages=messages,
            changed_calls=[ledger.changed_row(before[c.id], c) for c in changed],
            checkpoints=[point],
            events=events,
            audits=[ended_audit(work.run, to)] if to.ended else [],
            usage=usage or Usage(),
            model_failures=work.model_failures if model_failures is None else model_failures,
            available_in=outcome.seconds if isinstance(outcome, Wait) else None,
            waits_for=outcome.waits_for if isinstance(outcome, Wait) else "",
            error=_error(work, outcome),
            progress=not isinstance(outcome, Wait),
        )
    )
    work.calls = after


def _children_first(work: Work, outcome: Outcome) -> Outcome:
    """A run that is to stop while others work for it asks them first, and waits unheld until the last has ended."""
    stops = isinstance(outcome, Stop) and outcome.reason in ("cancel", "deadline")
    if stops and any(call.awaits for call in work.calls) and stopping.stop_children_of(work.run_id):
        return Wait(UNTIL_WOKEN, "stopping")
    return outcome


def wait_for_place(work: Work, what: str) -> Outcome:
    """Let go of the run until a place of this quota is free."""
    later = Wait(0.0, "quota", what)
    end(work, later)
    return later


def closed(call: CallRecord) -> CallRecord:
    """A call that nobody will run any more."""
    if call.status in _OPEN:
        return call.ended_with(
            ToolOutcome(
                "cancelled", "Not executed: the run was interrupted.", error_code="cancelled"
            )
        )
    if call.status is CallStatus.EXECUTING:
        status = "cancelled" if call.effect.repeatable else "unknown"
        return call.ended_with(
            ToolOutcome(status, "Interrupted while it ran.", error_code="interrupted")
        )
    return call


def _must_be_asked(to: RunStatus, calls: Sequence[CallRecord]) -> bool:
    """True if a retry has to begin with a person: an outcome is unknown, and the model may not guess it."""
    may_be_retried = (to, RunStatus.PENDING) in RUN_MOVES
    return may_be_retried and any(call.status is CallStatus.UNKNOWN for call in calls)


def _closing_messages(
    work: Work, calls: Sequence[CallRecord]
) -> tuple[list[dict[str, Json]], list[str]]:
    if work.graph is not None or not (work.view.answered and calls):
        return [], []
    results = wire.tool_results(ledger.told(call) for call in calls)  # type: ignore[misc]
    return work.say(work.next_step, [results])


def _error(work: Work, outcome: Outcome) -> dict[str, Json] | None:
    if isinstance(outcome, Fail):
        return error_of(outcome)
    if outcome == Stop("deadline"):
        said = f"All {work.limits.deadline_s} s of work are used; a retry gives it as many again."
        return {"code": "deadline", "message": said, "retryable": True}
    if isinstance(outcome, Stop) and outcome.message:
        code = "budget_spent" if outcome.reason == "budget" else outcome.reason
        message = ports.redactor().text(outcome.message)
        return {"code": code, "message": message, "retryable": True}
    return None

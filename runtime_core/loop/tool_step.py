"""One tool execution: intent first, then the effect, then its result in one commit with what comes next."""

from __future__ import annotations

import dataclasses
import uuid
from typing import Any

from runtime_core import clock
from runtime_core.checkpoints.recover import Facts, Strategy, strategy
from runtime_core.errors import ToolError
from runtime_core.limits import limits
from runtime_core.loop import binding, children, places, spans
from runtime_core.loop.continuation import begin_events, follow
from runtime_core.loop.control import Hold
from runtime_core.loop.ending import end, wait_for_place
from runtime_core.loop.model_step import result_event, step_row
from runtime_core.loop.outcome import Fail, Outcome, Stop, checkpoint_reason
from runtime_core.loop.progress import ProgressWriter
from runtime_core.loop.work import OpenStep, Work, checkpoint_event
from runtime_core.models import Interrupt, Run, ToolCall
from runtime_core.prepared import instances
from runtime_core.states import CallStatus, CheckpointReason
from runtime_core.tools import ToolContext, gate, ledger, runner
from runtime_core.tools.ledger import CallRecord
from runtime_core.tools.registry import Tool
from runtime_core.transactions import outside
from runtime_core.transitions import NewEvent, StepCommit
from runtime_core.values import Json, ToolOutcome, Usage


def take(work: Work, hold: Hold, call: CallRecord) -> Outcome:
    """Bring one call to its end. Every path commits exactly what is known, and nothing is guessed."""
    tool = work.tools.get(call.tool)
    if call.status is CallStatus.APPROVED:
        refused = _refusal(work, call, tool)
        if refused:
            return _refuse(work, hold, call, tool, *refused)
        if not places.taken(work, places.of_tool(call.tool)):
            return wait_for_place(work, places.of_tool(call.tool))
        call = _begin(work, call)
    elif call.epoch != work.claim.epoch and not (tool and tool.delegates):
        if not places.taken(work, places.of_tool(call.tool)):
            return wait_for_place(work, places.of_tool(call.tool))
        recovered = _recover(work, hold, call, tool)
        if not isinstance(recovered, CallRecord):
            return recovered
        call = recovered
    if tool is None:
        return _refuse(
            work, hold, call, None, "rejected", f"The tool {call.tool} no longer exists."
        )
    if tool.delegates:
        return _delegate(work, hold, call)
    return _perform(work, hold, call, tool)


def _refusal(work: Work, call: CallRecord, tool: Tool | None) -> tuple[str, str] | None:
    """Why an approved call may not run now, as the gate says it. What takes an effect back needs no permission."""
    if call.undoes is None:
        asked = _asked(call.approval)
        refused = gate.refuse_or_drift(call, tool, work.rules, asked)
        if not refused and (why := binding.drifted(work, call, asked)):
            return "drift", why
        return refused
    if tool is None or tool.compensate is None:
        return "rejected", f"{call.tool} cannot be taken back any more."
    return None


def _asked(interrupt_id: uuid.UUID | None) -> Interrupt | None:
    if interrupt_id is None:
        return None
    found = instances(Interrupt, "WHERE id = %(interrupt)s", interrupt=interrupt_id)
    return found[0] if found else None


def _begin(work: Work, call: CallRecord, *, again: bool = False) -> CallRecord:
    """Intent before effect: the call is `executing` in the ledger before its tool is touched."""
    executing = call.begun(work.claim)
    if again:
        text = f"The worker was lost; running {call.tool} again with the same key."
        events = [work.open_step("tool", call.tool), NewEvent("progress", {"message": text})]
    else:
        events = begin_events(work, executing)
    work.commit(
        StepCommit(
            next_step=work.next_step,
            changed_calls=[ledger.changed_row(call, executing)],
            events=events,
            progress=False,
        )
    )
    _replace(work, executing)
    return executing


def _recover(work: Work, hold: Hold, call: CallRecord, tool: Tool | None) -> CallRecord | Outcome:
    """A call that a lost worker left executing: run it again if that is harmless, ask its tool, or ask a person."""
    happened: ToolOutcome | None = ToolOutcome("unknown", None, error_code="outcome_unknown")
    chosen = strategy(_facts(call, tool))
    if chosen is Strategy.ASK_TOOL and tool is not None:
        with outside("ask_tool"):
            happened = runner.reconcile(tool, call.args, _context(work, hold, call, tool, None))
    if chosen is Strategy.REPLAY or happened is None:
        return _begin(work, call, again=True)
    work.append([work.open_step("tool", call.tool)])
    ended = call.ended_with(happened)
    return _save(work, hold, _opened(work), call, ended, CheckpointReason.RECOVERED)


def _facts(call: CallRecord, tool: Tool | None) -> Facts:
    if tool is None:
        return Facts(call.status, call.effect, None)
    if call.undoes is not None:
        return Facts(call.status, call.effect, tool.compensate_effect)
    return Facts(
        call.status, call.effect, tool.spec.effect, can_be_asked=tool.reconcile is not None
    )


def _perform(work: Work, hold: Hold, call: CallRecord, tool: Tool) -> Outcome:
    step = _opened(work)
    progress = ProgressWriter(work, step.index, call.tool)
    span = spans.open_call(work, step, call)
    context = _context(work, hold, call, tool, progress)
    context = dataclasses.replace(context, on_command=spans.commands_of(span))
    try:
        with outside("tool"):
            if not work.may_act:
                return Stop("lost")
            outcome = _run(tool, call, context)
    finally:
        progress.close()
    if hold.reason == "lost":
        return Stop("lost")
    ended = call.ended_with(outcome)
    after = _save(work, hold, step, call, ended, CheckpointReason.TOOL_RESULT)
    spans.close_call(
        span, ended
    )  # only now: a worker that lost the run must not close what its heir abandoned
    return after


def _run(tool: Tool, call: CallRecord, context: ToolContext) -> ToolOutcome:
    if call.undoes is None:
        return runner.run(tool, call.args, context, limits().tool_retries)
    undone = ToolCall.objects.get(id=call.undoes)
    context = dataclasses.replace(context, undoes_key=undone.idempotency_key)
    outcome = runner.compensate(tool, call.args, ledger.result_of(undone), context)
    if outcome.status == "compensated":  # which the call that it undoes is from now on
        return dataclasses.replace(outcome, status="succeeded")
    return outcome


def _delegate(work: Work, hold: Hold, call: CallRecord) -> Outcome:
    """Hand the call to a run of its own, or take what that run came to. Safe to repeat: a call has one child."""
    try:
        child = children.of(call) or children.start(work, call)
    except ToolError as error:
        failed = ToolOutcome("failed", {"error": error.message}, error_code=error.code)
        step = _tool_step(work, call)
        return _save(work, hold, step, call, call.ended_with(failed), CheckpointReason.TOOL_RESULT)
    if not child.state.ended:
        return _handed_on(work, hold, call, child)
    step = _tool_step(work, call)
    # The wait is what the trace shows, not the moment in which its end was noticed.
    waited = dataclasses.replace(step, started_at=child.created_at)
    span = spans.open_call(work, waited, call, run=str(child.id), agent=child.agent.name)
    ended = call.ended_with(children.outcome_of(child))
    after = _save(
        work, hold, step, call, ended, CheckpointReason.TOOL_RESULT, children.usage_of(child)
    )
    spans.close_call(span, ended)
    return after


def _handed_on(work: Work, hold: Hold, call: CallRecord, child: Run) -> Outcome:
    """The child is at work: what else this turn asks for goes on beside it."""
    step = _tool_step(work, call)
    waiting = call.evolve(awaits=child.id)
    calls = [waiting if c.id == call.id else c for c in work.calls]
    text = f"{child.agent.name} works on it in a run of its own."
    told = NewEvent("progress", {"message": text, "run": str(child.id)}, step.index)
    after = follow(work, calls, work.output, begin=hold.goes_on)
    work.commit(
        StepCommit(
            to=after.to,
            cause=after.cause,
            next_step=work.next_step,
            changed_calls=_changes(work, call, after.calls),
            interrupts=after.interrupts,
            events=[told, *after.events],
            audits=after.audits,
            spans=after.spans,
            available_in=after.available_in,
            output=after.output,
            error=after.error,
        )
    )
    work.calls = after.calls
    if work.step is step:
        work.step = None
    return after.outcome


def _tool_step(work: Work, call: CallRecord) -> OpenStep:
    """The step that is open for this call; one is opened where a worker before this one had announced it."""
    if work.step is None or work.step.kind != "tool":
        work.append([work.open_step("tool", call.tool)])
    return _opened(work)


def _context(
    work: Work, hold: Hold, call: CallRecord, tool: Tool, progress: ProgressWriter | None
) -> ToolContext:
    callbacks: dict[str, Any] = {"on_progress": progress} if progress else {}
    return ToolContext(
        run_id=work.run_id,
        project_id=work.run.project_id,
        call_id=call.call_id,
        idempotency_key=call.idempotency_key,
        requested_by=work.run.created_by_id,
        deadline=clock.monotonic() + tool.spec.timeout_seconds,
        stopping=hold.stop,
        workspace_path=work.workspace,
        **callbacks,
    )


def _save(
    work: Work,
    hold: Hold,
    step: OpenStep,
    before: CallRecord,
    ended: CallRecord,
    reason: CheckpointReason,
    usage: Usage | None = None,
) -> Outcome:
    """Result, step, checkpoint and what comes next, in one commit."""
    if hold.reason == "shutdown" and ended.status is CallStatus.CANCELLED:
        return Stop("shutdown")  # harmless to run again, by whoever claims the run next
    if hold.reason in ("cancel", "deadline"):
        return _save_and_stop(work, hold, step, ended)
    calls = [ended if c.id == ended.id else c for c in work.calls]
    told = [result_event(ended, step.index)] if ended.status.ended else []
    after = follow(work, calls, work.output, begin=hold.goes_on)
    changed = _changes(work, before, after.calls)
    if isinstance(after.outcome, Fail):
        return _save_failed(work, step, ended, calls, after.outcome, told)
    if all(call.status.ended for call in after.calls):
        reason = CheckpointReason.ROUND
    point = work.point(checkpoint_reason(after.outcome, reason), step.index, steps=1)
    told.append(checkpoint_event(point, step.index))
    work.commit(
        StepCommit(
            to=after.to,
            cause=after.cause,
            next_step=work.next_step,
            steps=[step_row(work, step, _step_status(ended), _detail(ended))],
            changed_calls=changed,
            interrupts=after.interrupts,
            checkpoints=[point],
            events=[*told, *after.events],
            audits=after.audits,
            spans=after.spans,
            usage=usage or Usage(),
            available_in=after.available_in,
            output=after.output,
            error=after.error,
        )
    )
    work.calls = after.calls
    if work.step is step:
        work.step = None
    return after.outcome


def _changes(work: Work, before: CallRecord, after: list[CallRecord]) -> list[dict[str, Json]]:
    known = {call.id: call for call in work.calls} | {before.id: before}
    return [ledger.changed_row(known[c.id], c) for c in after if c != known[c.id]]


def _save_and_stop(work: Work, hold: Hold, step: OpenStep, ended: CallRecord) -> Outcome:
    stop = Stop(hold.reason)
    calls = [ended if c.id == ended.id else c for c in work.calls]
    end(
        work,
        stop,
        steps=[step_row(work, step, _step_status(ended), _detail(ended))],
        events=[result_event(ended, step.index)],
        calls=calls,
    )
    return stop


def _save_failed(
    work: Work,
    step: OpenStep,
    ended: CallRecord,
    calls: list[CallRecord],
    outcome: Fail,
    told: list[NewEvent],
) -> Outcome:
    row = step_row(work, step, _step_status(ended), _detail(ended))
    end(work, outcome, steps=[row], events=told, calls=calls)
    return outcome


def _refuse(
    work: Work, hold: Hold, call: CallRecord, tool: Tool | None, verdict: str, reason: str
) -> Outcome:
    """An approved call that may not run now: told to the model, or asked again where what was approved has changed."""
    work.append([work.open_step("tool", call.tool)])
    if verdict == "drift" and tool is not None:
        again = call.evolve(
            status=CallStatus.AWAITING_APPROVAL,
            error_code="drift",
            result_text=reason,
            schema_digest=tool.spec.digest,
            effect=tool.spec.effect,
            risk=tool.spec.risk,
        )
    else:
        again = call.ended_with(ToolOutcome("rejected", f"Not run: {reason}", error_code="refused"))
    return _save(work, hold, _opened(work), call, again, CheckpointReason.REFUSED)


def _opened(work: Work) -> OpenStep:
    assert work.step is not None  # noqa: S101 - every path here has opened one
    return work.step


def _replace(work: Work, call: CallRecord) -> None:
    work.calls = [call if c.id == call.id else c for c in work.calls]


def _step_status(call: CallRecord) -> str:
    match call.status:
        case CallStatus.SUCCEEDED:
            return "succeeded"
        case CallStatus.CANCELLED:
            return "cancelled"
        case _:
            return "failed"


def _detail(call: CallRecord) -> dict[str, Json]:
    return {
        "call_id": call.call_id,
        "status": call.status.value,
        "error": call.error_code,
        "why": call.verdict_reason,
    }

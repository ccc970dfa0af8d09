"""One model decision: ask, stream, authorise what it wants, and save it all in one commit."""

from __future__ import annotations

from pydantic_ai.messages import ModelMessage

from runtime_core import gateway, ports
from runtime_core.checkpoints import snapshot
from runtime_core.errors import ContextTooLong, ModelError, ModelProtocolError, ModelRefused
from runtime_core.gateway import Answer, ModelCall, StreamStopped, TextDelta
from runtime_core.gateway import messages as wire
from runtime_core.ids import new_id
from runtime_core.limits import limits
from runtime_core.loop import budget, compaction, escalation, places, retry, spans
from runtime_core.loop.continuation import Continuation, ended_audit, error_of, follow
from runtime_core.loop.control import Hold
from runtime_core.loop.deltas import DeltaWriter
from runtime_core.loop.ending import closed, end, wait_for_place
from runtime_core.loop.outcome import Fail, Go, Outcome, Stop, Wait, checkpoint_reason
from runtime_core.loop.retry import Again, Attempt
from runtime_core.loop.work import OpenStep, Work, checkpoint_event
from runtime_core.models import Step
from runtime_core.states import CheckpointReason, RunStatus
from runtime_core.tools import gate, ledger
from runtime_core.tools.ledger import CallRecord
from runtime_core.transactions import outside
from runtime_core.transitions import NewEvent, StepCommit
from runtime_core.values import Json, Span, Usage


def take(work: Work, hold: Hold) -> Outcome:
    """Ask the model once and save what came of it."""
    spent = budget.spent(work.limits, work.steps, work.usage)
    if spent:
        return Stop("budget", spent)
    if work.attempt.stop:
        stopped = Fail("model_failed", f"A person stopped the run. {work.attempt.stop}", True)
        end(work, stopped)
        return stopped
    if not places.taken(work, places.of_model(work)):
        return wait_for_place(work, places.of_model(work))
    if work.step is None or work.step.kind != "model":
        work.append([work.open_step("model", work.run.agent.name)])
    step = _opened(work)
    request = _results(work)
    call = _model_call(work, request)
    span = spans.open_model(work, step, call)
    deltas = DeltaWriter(work, step.index)
    try:
        with outside("model"):
            answer = _listen(call, hold, deltas)
        _refuse_unusable(answer)
    except StreamStopped as stopped:
        return _stopped(work, hold, step, span, deltas, stopped)
    except ModelError as error:
        return _failed(work, hold, step, span, deltas, error)
    return _save(work, hold, step, span, deltas, request, answer)


def _opened(work: Work) -> OpenStep:
    assert work.step is not None  # noqa: S101 - opened right before
    return work.step


def _results(work: Work) -> list[ModelMessage]:
    """The results of the last turn's calls, as the next thing the model is told."""
    if not work.view.answered:
        return []
    return [wire.tool_results(ledger.told(call) for call in work.calls)]  # type: ignore[misc]


def _model_call(work: Work, request: list[ModelMessage]) -> ModelCall:
    return ModelCall(
        model=work.attempt.model or work.definition.get("model"),
        script=work.definition.get("script"),
        instructions=work.definition.get("instructions", ""),
        messages=compaction.fitting(work, request),
        tools=tuple(tool.spec for tool in work.tools.values()),
        plain_schemas=work.attempt.plain_schemas,
    )


def _listen(call: ModelCall, hold: Hold, deltas: DeltaWriter) -> Answer:
    answer, rest = None, ""
    try:
        for part in gateway.stream(call, hold.stop):
            match part:
                case TextDelta(text, True):
                    rest += text  # redacting it as a whole costs less than piece by piece
                case TextDelta(text):
                    deltas.feed(text)
                case Answer():
                    answer = part
                case _:
                    pass  # reasoning is neither shown nor stored
    finally:
        deltas.feed(rest, last=True)
    if answer is None:
        raise ModelProtocolError()
    return answer


def _refuse_unusable(answer: Answer) -> None:
    """A call that was cut off is not repaired and not run: the model is asked again, within the budget of retries."""
    if (answer.response.metadata or {}).get("dropped_calls"):
        raise ModelProtocolError(
            "The model's answer was cut off by its token limit in the middle of a tool call; none was run."
        )
    if not answer.text.strip() and not wire.calls_of(answer.response):
        raise ModelProtocolError("The model's answer was empty.", empty=True)


def _save(
    work: Work,
    hold: Hold,
    step: OpenStep,
    span: Span,
    deltas: DeltaWriter,
    request: list[ModelMessage],
    answer: Answer,
) -> Outcome:
    calls = _authorise(work, step.index, answer)
    tail = deltas.finish()
    said = [*request, answer.response]
    give_up = _too_many_malformed(work, calls)
    if give_up:
        calls = [closed(call) for call in calls]
        said.append(wire.tool_results(ledger.told(call) for call in calls))  # type: ignore[misc]
        after = _given_up(work, calls, give_up)
    else:
        after = follow(work, calls, deltas.text, begin=hold.goes_on, usage=answer.usage)
    rows, bodies = work.say(step.index, said)
    rolling = snapshot.extend(work.rolling, bodies)
    reason = checkpoint_reason(after.outcome, CheckpointReason.PLAN)
    point = work.point(reason, step.index, steps=1, added=len(rows), rolling=rolling)
    told = [
        *tail,
        *(result_event(c, step.index) for c in calls if c.status.ended),
        checkpoint_event(point, step.index),
    ]
    work.commit(
        StepCommit(
            to=after.to,
            cause=after.cause,
            next_step=work.next_step,
            steps=[
                step_row(
                    work,
                    step,
                    "succeeded",
                    {
                        "finish_reason": answer.finish_reason,
                        "model": answer.model,
                        "calls": len(calls),
                        **work.attempt.differs,
                    },
                )
            ],
            messages=rows,
            new_calls=[ledger.new_row(call) for call in after.calls],
            interrupts=after.interrupts,
            checkpoints=[point],
            events=[*told, *after.events],
            audits=after.audits,
            spans=after.spans,
            usage=answer.usage,
            available_in=after.available_in,
            output=after.output,
            error=after.error,
        )
    )
    work.history += said
    work.position += len(rows)
    work.own_messages += len(rows)
    work.rolling = rolling
    work.weight += sum(map(len, bodies))
    work.calls = after.calls
    work.output = deltas.text
    spans.close_model(span, "ok", answer, deltas.text, attempt=work.attempt)
    work.attempt = work.attempt.after_success()
    if isinstance(after.outcome, Go) and (work.step is step):
        work.step = None
    return after.outcome


def _authorise(work: Work, step: int, answer: Answer) -> list[CallRecord]:
    return gate.authorise(
        answer.calls, run_id=work.run_id, step=step, tools=work.tools, rules=work.rules
    )


def _too_many_malformed(work: Work, calls: list[CallRecord]) -> Fail | None:
    if ledger.malformed_in_a_row(work.run_id, calls) < limits().malformed_calls_in_a_row:
        return None
    last = calls[-1].result_redacted
    return Fail(
        "malformed_calls", f"The model's tool calls cannot be used, again and again. Last: {last}"
    )


def _given_up(work: Work, calls: list[CallRecord], why: Fail) -> Continuation:
    """The run fails with this answer: nothing of it is begun, and nobody is asked about it."""
    told = [NewEvent("error", error_of(why))]
    return Continuation(why, calls, events=told, audits=[ended_audit(work.run, RunStatus.FAILED)])


def _stopped(
    work: Work, hold: Hold, step: OpenStep, span: Span, deltas: DeltaWriter, stopped: StreamStopped
) -> Outcome:
    """The stream was closed on request: keep the partial text and what it cost, then stop."""
    if hold.reason in ("lost", "shutdown"):
        return Stop(hold.reason)
    usage = stopped.data.get("usage") or Usage()
    tail = deltas.finish()
    end(
        work,
        Stop(hold.reason),
        steps=[step_row(work, step, "cancelled", {"partial": True})],
        events=tail,
        usage=usage,
    )
    spans.close_model(span, "cancelled", None, deltas.text, usage)
    return Stop(hold.reason)


def _failed(
    work: Work, hold: Hold, step: OpenStep, span: Span, deltas: DeltaWriter, error: ModelError
) -> Outcome:
    """No complete answer came: try again, now or later, or fail. Nothing of what came is executed or fed back."""
    failures = work.model_failures + 1
    message = ports.redactor().text(error.message)
    again = _again(work, error, failures)
    usage = error.data.get("usage") or Usage()
    detail = {"error": error.code, "message": message, **work.attempt.differs}
    told = deltas.finish()
    spans.close_model(
        span, "error", None, deltas.text, usage, error_code=error.code, attempt=work.attempt
    )
    if again is None and escalation.wanted(work, error):
        detail["next"] = work.attempt.stored()
        row = step_row(work, step, "failed", detail)
        return _escalate(work, step, row, told, message, failures, usage)
    if again is None:
        row = step_row(work, step, "failed", detail)
        retryable = not isinstance(error, ContextTooLong | ModelRefused)
        failed = Fail(error.code, message, retryable=retryable)
        end(work, failed, steps=[row], events=told, usage=usage, model_failures=failures)
        return failed
    row = step_row(work, step, "failed", {**detail, "next": again.attempt.stored()})
    told.append(_failure_event(step, error, message, again, work.attempt))
    work.attempt = again.attempt
    if again.seconds > limits().park_after_seconds:
        later = Wait(again.seconds)
        end(work, later, steps=[row], events=told, usage=usage, model_failures=failures)
        return later
    work.commit(
        StepCommit(
            next_step=work.next_step,
            steps=[row],
            events=told,
            usage=usage,
            model_failures=failures,
            progress=False,
        )
    )
    work.step = None
    pause(hold, again.seconds)
    return Go()


def _escalate(
    work: Work,
    step: OpenStep,
    row: dict[str, Json],
    told: list[NewEvent],
    message: str,
    failures: int,
    usage: Usage,
) -> Outcome:
    """Leave the run to a person, who says how it goes on; the conversation stays as it is."""
    after = escalation.question(work, step, message, failures)
    point = work.point(CheckpointReason.INTERRUPT, step.index, steps=1)
    work.commit(
        StepCommit(
            to=after.to,
            cause=after.cause,
            next_step=work.next_step,
            steps=[row],
            new_calls=[ledger.new_row(call) for call in after.calls],
            interrupts=after.interrupts,
            checkpoints=[point],
            events=[*told, checkpoint_event(point, step.index), *after.events],
            audits=after.audits,
            spans=after.spans,
            usage=usage,
            model_failures=failures,
        )
    )
    return after.outcome


def pause(hold: Hold, seconds: float) -> None:
    """Hold the run for so short a time that letting it go would take longer; ends at once when it must stop."""
    hold.stop.wait(seconds)


def _again(work: Work, error: ModelError, failures: int) -> Again | None:
    """How the model is asked once more; None: the run gives up."""
    if error.data.get("empty") and failures >= limits().empty_answers_in_a_row:
        return None
    if isinstance(error, ContextTooLong):
        shorter = compaction.tighten(work, _results(work))
        return Again(0.0, work.attempt) if shorter else None  # once, with a shorter conversation
    failed = Step.objects.filter(
        run_id=work.run_id, kind="model", status="failed", attempt=work.run.attempt
    )
    counted = retry.Failures(failures, failed.count() + 1)
    return retry.after(error, counted, work.attempt, work.definition.get("fallback_models", ()))


def _failure_event(
    step: OpenStep, error: ModelError, message: str, again: Again, before: Attempt
) -> NewEvent:
    data: dict[str, Json] = {
        "code": error.code,
        "message": message,
        "retryable": True,
        "retry_in_s": round(again.seconds, 1),
    }
    if again.attempt.model != before.model:
        data["next_model"] = again.attempt.model
    return NewEvent("error", data, step.index)


def step_row(work: Work, step: OpenStep, status: str, detail: dict[str, Json]) -> dict[str, Json]:
    """A step as `sql.commit_step` inserts it."""
    return {
        "id": str(new_id()),
        "index": step.index,
        "kind": step.kind,
        "status": status,
        "attempt": work.run.attempt,
        "name": step.name[:120],
        "detail": detail,
        "started_at": step.started_at.isoformat(),
    }


def result_event(call: CallRecord, step: int) -> NewEvent:
    """What tells that a call has ended."""
    return NewEvent(
        "tool_call_result",
        {
            "call_id": call.call_id,
            "tool": call.tool,
            "status": call.status.value,
            "result": call.result_redacted,
            "truncated": call.truncated,
        },
        step,
    )

"""What a step tells the trace of itself: its span at its start, and the same span again at its end."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping

from runtime_core import clock, ports, tracing
from runtime_core.gateway import Answer, ModelCall
from runtime_core.ids import new_id
from runtime_core.loop.retry import Attempt
from runtime_core.loop.work import OpenStep, Work
from runtime_core.states import CallStatus
from runtime_core.tools.context import Command
from runtime_core.tools.ledger import CallRecord
from runtime_core.values import Json, Span, Usage

_CALL_STATUS = {CallStatus.SUCCEEDED: "ok", CallStatus.CANCELLED: "cancelled"}


def open_model(work: Work, step: OpenStep, call: ModelCall) -> Span:
    """A model is asked."""
    span = Span(
        id=tracing.of_step(work.run_id, step.index),
        run_id=work.run_id,
        parent_id=work.run_id,
        kind="llm",
        name=f"model {call.model or call.script or 'default'}",
        started_at=step.started_at,
        epoch=work.claim.epoch,
        step=step.index,
    )
    ports.spans().write([span])
    return span


def close_model(
    span: Span,
    status: str,
    answer: Answer | None,
    text: str,
    usage: Usage | None = None,
    error_code: str = "",
    attempt: Attempt | None = None,
) -> None:
    """It has answered, or not."""
    attrs: dict[str, Json] = {"error": error_code} if error_code else {}
    attrs |= attempt.differs if attempt else {}
    if answer:
        attrs |= {
            "model": answer.model,
            "provider": answer.provider,
            "finish_reason": answer.finish_reason,
            "first_token_s": answer.first_token_seconds,
            "calls": [call.tool for call in answer.calls],
        }
    closed = Span(
        id=span.id,
        run_id=span.run_id,
        parent_id=span.parent_id,
        kind=span.kind,
        name=f"model {answer.model}" if answer else span.name,
        started_at=span.started_at,
        ended_at=clock.now(),
        status=status,
        epoch=span.epoch,
        step=span.step,
        usage=answer.usage if answer else usage or Usage(),
        attrs=attrs,
        output=text,
    )
    ports.spans().write([closed])


def open_call(work: Work, step: OpenStep, call: CallRecord, **attrs: Json) -> Span:
    """A tool runs, or another agent in its place; it hangs on the step that asked for it."""
    undoes = call.undoes is not None
    span = Span(
        id=tracing.of_call(call.id, work.claim.epoch),
        run_id=work.run_id,
        # Nobody was asked for the plan of a run that takes back what another one did.
        parent_id=work.run_id if undoes else tracing.of_step(work.run_id, call.step),
        kind="compensate" if undoes else "subagent" if "run" in attrs else "tool",
        name=call.tool,
        started_at=step.started_at,
        epoch=work.claim.epoch,
        step=step.index,
        attrs={
            "risk": call.risk.value,
            "effect": call.effect.value,
            "why": call.verdict_reason,
            "attempt": call.attempts,
            **attrs,
        },
        input=call.args,
    )
    ports.spans().write([span])
    return span


def close_call(span: Span, call: CallRecord) -> None:
    """It is done."""
    closed = Span(
        id=span.id,
        run_id=span.run_id,
        parent_id=span.parent_id,
        kind=span.kind,
        name=span.name,
        started_at=span.started_at,
        ended_at=clock.now(),
        status=_CALL_STATUS.get(call.status, "error"),
        epoch=span.epoch,
        step=span.step,
        attrs={**span.attrs, "error": call.error_code} if call.error_code else span.attrs,
        input=span.input,
        output=call.result_redacted,
    )
    ports.spans().write([closed])


def commands_of(span: Span) -> Callable[[Command], None]:
    """Tells of each command that the call runs in the sandbox, when it has ended."""

    def tell(done: Command) -> None:
        ended = done.status == "exited" and done.exit_code == 0
        ports.spans().write(
            [
                Span(
                    id=new_id(),
                    run_id=span.run_id,
                    parent_id=span.id,
                    kind="sandbox",
                    name=done.argv[0],
                    started_at=done.started_at,
                    ended_at=clock.now(),
                    status="ok"
                    if ended
                    else "cancelled"
                    if done.status == "cancelled"
                    else "error",
                    epoch=span.epoch,
                    step=span.step,
                    attrs={"exit_code": done.exit_code, "ended": done.status},
                )
            ]
        )

    return tell


def node(work: Work, step: OpenStep, status: str, attrs: Mapping[str, Json] | None = None) -> None:
    """A node of a graph has run."""
    ports.spans().write(
        [
            Span(
                id=tracing.of_step(work.run_id, step.index),
                run_id=work.run_id,
                parent_id=work.run_id,
                kind="step",
                name=step.name,
                started_at=step.started_at,
                ended_at=clock.now(),
                status=status,
                epoch=work.claim.epoch,
                step=step.index,
                attrs=attrs or {},
            )
        ]
    )


def restored(work: Work, started_at: dt.datetime) -> None:
    """The run goes on from a checkpoint, here and now."""
    ports.spans().write(
        [
            Span(
                id=new_id(),
                run_id=work.run_id,
                parent_id=work.run_id,
                kind="checkpoint",
                name="gone on from its checkpoint",
                started_at=started_at,
                ended_at=clock.now(),
                status="ok",
                epoch=work.claim.epoch,
                attrs={"messages": work.own_messages, "steps": work.steps},
            )
        ]
    )

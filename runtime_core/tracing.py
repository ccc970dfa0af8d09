"""Spans of what outlives a single step: the run, and each wait for a person."""

from __future__ import annotations

import datetime as dt
import uuid

from runtime_core import clock
from runtime_core.models import Interrupt, Run
from runtime_core.states import InterruptStatus, RunStatus
from runtime_core.values import Json, Span

SPAN_STATUS_OF_RUN = {
    RunStatus.COMPLETED: "ok",
    RunStatus.FAILED: "error",
    RunStatus.TIMED_OUT: "error",
    RunStatus.CANCELLED: "cancelled",
}
_INTERRUPT_STATUS = {
    InterruptStatus.OPEN.value: "open",
    InterruptStatus.REJECTED.value: "cancelled",
    InterruptStatus.EXPIRED.value: "error",
    InterruptStatus.WITHDRAWN.value: "cancelled",
}


def of_step(run_id: uuid.UUID, index: int) -> uuid.UUID:
    """The span of a run's step. Whoever goes on from what the step asked for knows its parent without looking."""
    return uuid.UUID(int=run_id.int ^ (index + 1))


def of_call(call_id: uuid.UUID, epoch: int) -> uuid.UUID:
    """The span of a tool call under one claim; a worker that takes over has one of its own. Its own inverse."""
    return uuid.UUID(int=call_id.int ^ epoch)


def ended_run_span(run: Run, status: RunStatus, epoch: int | None = None) -> Span:
    """The root of a trace whose run has ended."""
    held = run.lease_epoch if epoch is None else epoch
    return run_span(run, held, clock.now(), SPAN_STATUS_OF_RUN[status])


def run_span(
    run: Run, epoch: int, ended_at: dt.datetime | None = None, status: str = "open"
) -> Span:
    """The root of a run's trace; its id is the run's."""
    return Span(
        id=run.id,
        run_id=run.id,
        parent_id=None,
        kind="run",
        name=run.title,
        started_at=run.created_at,
        ended_at=ended_at,
        status=status,
        epoch=epoch,
        attrs={
            "agent": run.agent.name,
            "version": run.agent_version.number,
            "attempt": run.attempt,
        },
    )


def asked_span(
    run_id: uuid.UUID, row: dict[str, Json], tool: str, step: int, at: dt.datetime, epoch: int
) -> Span:
    """The wait that begins with an interrupt; its id is the interrupt's."""
    return Span(
        id=uuid.UUID(row["id"]),
        run_id=run_id,
        parent_id=of_step(run_id, step),
        kind="interrupt",
        name=f"waiting for a person: {tool}",
        started_at=at,
        epoch=epoch,
        attrs={"kind": row["kind"], "risk": row["risk"], "why": row["reason"]},
    )


def settled_span(interrupt: Interrupt) -> Span:
    """The same wait, ended."""
    return Span(
        id=interrupt.id,
        run_id=interrupt.run_id,
        parent_id=of_step(interrupt.run_id, interrupt.tool_call.step),
        kind="interrupt",
        name=f"waiting for a person: {interrupt.tool_call.tool}",
        started_at=interrupt.created_at,
        ended_at=interrupt.decided_at,
        status=_INTERRUPT_STATUS.get(interrupt.status, "ok"),
        epoch=interrupt.run.lease_epoch,
        attrs={
            "kind": interrupt.kind,
            "risk": interrupt.risk,
            "why": interrupt.reason,
            "outcome": interrupt.status,
            "decided_by": interrupt.decided_by_id,
        },
    )


def decision_span(interrupt: Interrupt) -> Span:
    """What was decided, as a moment of that wait; one for each version of what was asked."""
    return Span(
        id=uuid.UUID(int=interrupt.id.int ^ (interrupt.version + 1)),
        run_id=interrupt.run_id,
        parent_id=interrupt.id,
        kind="decision",
        name=interrupt.action or interrupt.status,
        started_at=interrupt.decided_at or clock.now(),
        ended_at=interrupt.decided_at or clock.now(),
        status=_INTERRUPT_STATUS.get(interrupt.status, "ok"),
        epoch=interrupt.run.lease_epoch,
        attrs={
            "outcome": interrupt.status,
            "decided_by": interrupt.decided_by_id,
            "version": interrupt.version,
        },
    )

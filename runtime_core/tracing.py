"""Spans of what outlives a single step: the run, and each wait for a person."""

from __future__ import annotations

import datetime as dt
import uuid

from runtime_core.models import Interrupt, Run
from runtime_core.states import InterruptStatus
from runtime_core.values import Json, Span

_INTERRUPT_STATUS = {
    InterruptStatus.OPEN.value: "open",
    InterruptStatus.REJECTED.value: "cancelled",
    InterruptStatus.EXPIRED.value: "error",
    InterruptStatus.WITHDRAWN.value: "cancelled",
}


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
    run_id: uuid.UUID, row: dict[str, Json], tool: str, at: dt.datetime, epoch: int
) -> Span:
    """The wait that begins with an interrupt; its id is the interrupt's."""
    return Span(
        id=uuid.UUID(row["id"]),
        run_id=run_id,
        parent_id=run_id,
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
        parent_id=interrupt.run_id,
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

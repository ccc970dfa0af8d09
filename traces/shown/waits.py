"""The times in which a run did nothing: in the queue, backing off, paused, or before a person."""

from __future__ import annotations

import datetime as dt
import uuid
from dataclasses import dataclass

from runtime_core.models import Event, Interrupt, Run
from runtime_core.states import InterruptKind, InterruptStatus

STATUS_EVENTS = 500
_NAMES = {"pending": "in the queue", "waiting": "backing off", "paused": "paused",
          "interrupted": "before a person"}  # fmt: skip
_CAUSES = {"children": "until other agents are done", "stopping": "until other agents have stopped"}
_KINDS = {"pending": "queue", "waiting": "queue", "paused": "paused", "interrupted": "person"}


@dataclass(frozen=True, slots=True)
class Wait:
    """One interval of waiting; `kind` is queue, paused or person."""

    kind: str
    name: str
    started_at: dt.datetime
    ended_at: dt.datetime | None
    status: str = ""
    interrupt_id: uuid.UUID | None = None
    step: int | None = None


@dataclass(frozen=True, slots=True)
class Waits:
    """The run's waits, oldest first; `idle` are the stretches in which nothing of it was at work."""

    shown: list[Wait]
    idle: list[tuple[dt.datetime, dt.datetime | None]]


def waits_of(run: Run) -> Waits:
    """Every wait of the run; the last one may still go on."""
    parked = _parked(run)
    shown = [wait for wait in parked if wait.kind != "person"] + _asked(run)
    return Waits(
        sorted(shown, key=lambda wait: wait.started_at),
        [(wait.started_at, wait.ended_at) for wait in parked],
    )


def _parked(run: Run) -> list[Wait]:
    moves = Event.objects.filter(run=run, type="run_status").order_by("seq")
    waits: list[Wait] = []
    since, status, name = run.created_at, "pending", _NAMES["pending"]
    for at, data in moves.values_list("ts", "data")[:STATUS_EVENTS]:
        to = str(data.get("to", ""))
        if to == status:
            continue
        if status in _NAMES and at > since:
            waits.append(Wait(_KINDS[status], name, since, at))
        since, status = at, to
        name = _CAUSES.get(str(data.get("cause")), _NAMES.get(to, ""))
    if status in _NAMES and status == run.status:
        waits.append(Wait(_KINDS[status], name, since, None))
    return waits


def _asked(run: Run) -> list[Wait]:
    rows = Interrupt.objects.filter(run=run).select_related("tool_call").order_by("created_at")
    return [_of_interrupt(row) for row in rows[:STATUS_EVENTS]]


def _of_interrupt(row: Interrupt) -> Wait:
    what = "answer" if row.kind == InterruptKind.QUESTION else "decision"
    return Wait(
        kind="person",
        name=f"{what} on {row.tool_call.tool}",
        started_at=row.created_at,
        ended_at=None if row.status == InterruptStatus.OPEN else row.decided_at,
        status=row.status,
        interrupt_id=row.id,
        step=row.tool_call.step,
    )

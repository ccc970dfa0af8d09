"""The rows of a trace page: spans in tree order, the run's waits among them, with bars."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from runtime_core import clock
from runtime_core.models import Run
from runtime_core.tracing import SPAN_STATUS_OF_RUN
from traces.queries import Bone
from traces.shown.siblings import More
from traces.shown.span_tree import Node, Timed
from traces.shown.timescale import Timescale
from traces.shown.waits import Wait
from traces.spans.table import OF_A_WORKER

_ICONS = {"run": "run", "step": "step", "llm": "model", "tool": "tool", "interrupt": "clock",
          "decision": "user", "checkpoint": "flag", "sandbox": "admin", "mcp": "send",
          "subagent": "agent", "compensate": "undo"}  # fmt: skip
_TONES = {"ok": "ok", "error": "bad", "cancelled": "neutral", "abandoned": "late", "open": "info"}
_WAIT_TONES = {"queue": "neutral", "paused": "pause", "person": "wait"}
_WAIT_ICONS = {"queue": "hourglass", "paused": "pause", "person": "clock"}
ERRORS = ("error", "abandoned")
_MARKS = {
    "orphan": "unattached: its parent is not there",
    "cycle": "unattached: it is its own ancestor",
}


@dataclass(slots=True)
class TraceRow:
    """One row. `span` is None for a wait that has no span; `note` says what is odd about it."""

    name: str
    kind: str
    icon: str
    tone: str
    status: str
    depth: int
    started_at: dt.datetime
    ended_at: dt.datetime | None
    x: float
    width: float
    note: str = ""
    span: Bone | None = None
    interrupt_id: uuid.UUID | None = None
    tokens: int = 0
    cost_usd: float = 0.0
    children: int = 0
    level: int = 1
    left_out: int = 0
    peek_url: str = ""

    @property
    def is_open(self) -> bool:
        """True while it goes on."""
        return self.ended_at is None and self.status == "open"

    @property
    def is_error(self) -> bool:
        """True if the errors filter keeps it."""
        return self.status in ERRORS

    @property
    def took(self) -> dt.timedelta | None:
        """How long it took, or has taken so far; None where nobody knows."""
        if self.ended_at is None and not self.is_open:
            return None
        return max((self.ended_at or clock.now()) - self.started_at, dt.timedelta())


Entry = Node | More | Wait


def merged(entries: Sequence[Node | More], waits: Sequence[Wait]) -> list[Entry]:
    """Tree order; waits stand below the root, by time."""
    found: list[Entry] = []
    todo = sorted(waits, key=lambda wait: wait.started_at, reverse=True)
    for entry in entries:
        started_at = entry.span.started_at if isinstance(entry, Node) else entry.started_at
        while found and todo and entry.depth <= 1 and started_at > todo[-1].started_at:
            found.append(todo.pop())
        found.append(entry)
    return found + todo[::-1]


def row_of(run: Run, entry: Entry, scale: Timescale) -> TraceRow:
    """One entry with its bar."""
    if isinstance(entry, Wait):
        return _of_wait(entry, scale)
    return _of_more(entry) if isinstance(entry, More) else _of_span(run, entry, scale)


def is_error(run: Run, node: Node) -> bool:
    """True if the errors filter keeps it."""
    return status_of(run, node.span) in ERRORS


def _of_span(run: Run, node: Node, scale: Timescale) -> TraceRow:
    span = node.span
    assert isinstance(span, Bone)  # noqa: S101
    status = status_of(run, span)
    ended_at = _ended_at(run, span)
    x, width = scale.place(span.started_at, ended_at)
    return TraceRow(
        name=span.name,
        kind=span.kind,
        icon="cross" if status == "error" else _ICONS.get(span.kind, "ring"),
        tone=_tone(span, status),
        status=status,
        depth=node.shown_depth,
        level=node.depth,
        started_at=span.started_at,
        ended_at=ended_at,
        x=x,
        width=width,
        note="; ".join(_notes(node, status)),
        span=span,
        interrupt_id=span.id if span.kind == "interrupt" else None,
        tokens=node.tokens,
        cost_usd=node.cost_microusd / 1e6,
        children=node.children,
    )


def status_of(run: Run, span: Timed) -> str:
    """The root is as the run is. An open span whose worker is gone will never be closed: it counts as abandoned."""
    if span.id == run.id:
        return SPAN_STATUS_OF_RUN.get(run.state, "open")
    if span.status != "open" or span.ended_at is not None:
        return span.status
    if span.kind == "interrupt":
        return "cancelled" if run.state.ended else "open"
    lost = span.kind in OF_A_WORKER and span.epoch < run.lease_epoch
    return "abandoned" if run.state.ended or lost else "open"


def _ended_at(run: Run, span: Bone) -> dt.datetime | None:
    return run.ended_at if span.id == run.id else span.ended_at


def _tone(span: Bone, status: str) -> str:
    if span.kind == "interrupt" and status in ("open", "ok"):
        return "wait"
    if span.kind in ("llm", "run") and status == "ok":
        return "info"
    return _TONES.get(status, "neutral")


def _notes(node: Node, status: str) -> list[str]:
    notes = [_MARKS[node.mark]] if node.mark else []
    if node.backwards:
        notes.append("ends before it starts: clocks differ")
    if status == "abandoned":
        notes.append("abandoned: its worker was lost")
    if node.depth > node.shown_depth:
        notes.append(f"level {node.depth}")
    return notes


def _of_wait(wait: Wait, scale: Timescale) -> TraceRow:
    x, width = scale.place(wait.started_at, wait.ended_at)
    return TraceRow(
        name=wait.name,
        kind=wait.kind,
        icon=_WAIT_ICONS[wait.kind],
        tone=_WAIT_TONES[wait.kind],
        status="open" if wait.ended_at is None else "ok",
        depth=1,
        started_at=wait.started_at,
        ended_at=wait.ended_at,
        x=x,
        width=width,
        interrupt_id=wait.interrupt_id,
    )


def _of_more(more: More) -> TraceRow:
    spans = "" if more.spans == more.siblings else f", {more.spans:,} with all below them"
    return TraceRow(
        name=f"{more.siblings:,} more{spans}",
        kind="more",
        icon="dot",
        tone="neutral",
        status="",
        depth=more.shown_depth,
        level=more.depth,
        started_at=more.started_at,
        ended_at=more.started_at,
        x=0,
        width=0,
        left_out=more.siblings,
    )

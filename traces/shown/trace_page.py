"""What a trace page shows of a run's spans: rows of the tree or the log, folded, filtered and cut into pages."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from runtime_core import clock
from runtime_core.models import Run
from traces import queries
from traces.queries import Bone
from traces.shown.siblings import folded
from traces.shown.span_tree import Node, lay_out
from traces.shown.timescale import Timescale
from traces.shown.trace_rows import Entry, TraceRow, is_error, merged, row_of
from traces.shown.waits import Wait, waits_of

ROWS_A_PAGE = 200
VIEWS = ("tree", "log", "json")
# A page that is read anew every few seconds must be cheap.
LIVE_SPANS = 1_000


@dataclass(frozen=True, slots=True)
class Choice:
    """What the address asks for."""

    view: str = "tree"
    errors: bool = False
    queue: bool = True
    whole: bool = False
    start: int = 0
    span: str = ""

    @classmethod
    def of(cls, given: Any) -> Choice:
        """What of the query string is understood; the rest is left out."""
        start = given.get("from", "")
        view = given.get("view", "")
        return cls(
            view=view if view in VIEWS else "tree",
            errors=given.get("errors") == "1",
            queue=given.get("queue") != "0",
            whole=given.get("siblings") == "all",
            start=int(start) if start.isascii() and start.isdigit() and len(start) < 9 else 0,
            span=given.get("span", ""),
        )

    def url(self, **changes: Any) -> str:
        """The address that asks for the same but for these changes; another filter begins at its first row."""
        now = {name: getattr(self, name) for name in ("view", "errors", "queue", "whole", "start")}
        if set(changes) & {"view", "errors", "queue", "whole"}:
            now["start"] = 0
        now |= changes
        query = {
            "view": now["view"] if now["view"] != "tree" else "",
            "errors": "1" if now["errors"] else "",
            "queue": "" if now["queue"] else "0",
            "siblings": "all" if now["whole"] else "",
            "from": now["start"] or "",
            "span": changes.get("span", ""),
        }
        return f"?{urlencode({name: value for name, value in query.items() if value})}"


@dataclass(frozen=True, slots=True)
class Trace:
    """A run with its spans laid out."""

    run: Run
    spans: list[Bone]
    nodes: list[Node]
    waits: list[Wait]
    scale: Timescale

    @property
    def is_live(self) -> bool:
        """True if the page follows what goes on."""
        return not self.run.ended_at and len(self.spans) <= LIVE_SPANS

    @property
    def errors(self) -> int:
        """How many spans ended badly."""
        return sum(is_error(self.run, node) for node in self.nodes)

    def node(self, span_id: str) -> Node | None:
        """The node of one span, if it is in this trace."""
        return next((node for node in self.nodes if str(node.span.id) == span_id), None)

    def row(self, node: Node) -> TraceRow:
        """Its row."""
        return row_of(self.run, node, self.scale)


def trace_of(run: Run) -> Trace:
    """The run's trace as it is now."""
    spans = queries.bones_of(run.id)
    known = {span.id for span in spans}
    found = waits_of(run)
    waits = [wait for wait in found.shown if wait.interrupt_id not in known]
    times = [(s.started_at, run.ended_at if s.id == run.id else s.ended_at) for s in spans]
    times += [(wait.started_at, wait.ended_at) for wait in waits]
    scale = Timescale(times, found.idle, run.ended_at or clock.now())
    return Trace(run, spans, lay_out(spans), waits, scale)


def shown(trace: Trace, choice: Choice) -> dict[str, Any]:
    """The rows that the choice asks for, with the ways to the others."""
    entries = _entries(trace, choice)
    start, end = choice.start, choice.start + ROWS_A_PAGE
    rows = [row_of(trace.run, entry, trace.scale) for entry in entries[start:end]]
    for row in rows:
        if row.span:
            row.peek_url = reverse("trace-span", args=[trace.run.id, row.span.id])
    return {
        "rows": rows,
        "total": len(entries),
        "next_url": choice.url(start=end) if len(entries) > end else "",
        "previous_url": choice.url(start=max(start - ROWS_A_PAGE, 0)) if start else "",
        "has_folded": any(row.left_out for row in rows),
    }


def _entries(trace: Trace, choice: Choice) -> list[Entry]:
    failed: Callable[[Node], bool] = partial(is_error, trace.run)
    if choice.errors:
        return [node for node in trace.nodes if failed(node)]
    if choice.view == "log":
        return sorted(trace.nodes, key=lambda node: (node.span.started_at, node.span.id.int))
    waits = [wait for wait in trace.waits if choice.queue or wait.kind != "queue"]
    if choice.whole:
        return merged(trace.nodes, waits)
    chosen = choice.span
    return merged(
        folded(trace.nodes, lambda node: failed(node) or str(node.span.id) == chosen), waits
    )


def parent_of(trace: Trace, span: Bone) -> Bone | None:
    """The span that it hangs on."""
    wanted: uuid.UUID | None = span.parent_id
    return next((one for one in trace.spans if one.id == wanted), None)

"""Traces: which runs left one, and one run's spans as a tree with bars."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from runtime_core import clock
from runtime_core import queries as core_queries
from runtime_core.errors import NotFound
from runtime_core.models import Run
from traces import queries
from traces.gate import redactor
from traces.models import SpanPayload, SpanRow
from traces.pages import caller, page
from traces.span_tree import lay_out
from traces.timescale import Timescale
from traces.trace_rows import TraceRow, rows_of
from traces.views.runs import filters_of, list_context
from traces.waits import waits_of

ROWS_A_PAGE = 500
SHORT_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Part:
    """What went into or came out of a span: short values by name, long ones as blocks of text."""

    name: str
    short: list[tuple[str, str]]
    long: list[tuple[str, str]]
    truncated: bool


@page
@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """Runs with the numbers of their traces."""
    chosen = filters_of(request)
    cursor = request.GET.get("cursor") or None
    found = core_queries.runs(
        caller(request).projects(), status=chosen["status"], agent=chosen["agent"], cursor=cursor
    )
    summaries = queries.trace_summaries(run.id for run in found.items)
    context = list_context(request, chosen, found.next_cursor) | {
        "rows": [(run, summaries.get(run.id, queries.TraceSummary())) for run in found.items],
    }
    return render(request, "traces/traces.html", context)


@page
@require_safe
def show(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    """One trace; `?span=` opens a span, `?errors=1` leaves the rest out, `?from=` pages."""
    run = core_queries.run(caller(request).projects(), run_id)
    spans = queries.spans_of(run.id)
    rows, scale = _rows(run, spans)
    errors_only = request.GET.get("errors") == "1"
    shown = [row for row in rows if row.is_error] if errors_only else rows
    start = _whole_number(request.GET.get("from", ""))
    open_span = _chosen(spans, request.GET.get("span", ""))
    context = {
        "run": run,
        "rows": shown[start : start + ROWS_A_PAGE],
        "total": len(shown),
        "all": len(rows),
        "scale": scale,
        "errors_only": errors_only,
        "errors": sum(row.is_error for row in rows),
        "redactions": _redactions(spans),
        "summary": queries.trace_summaries([run.id]).get(run.id, queries.TraceSummary()),
        "cut": len(spans) >= queries.SPANS_READ,
        "query": _query(errors=errors_only, start=start),
        "next_url": f"?{_query(errors=errors_only, start=start + ROWS_A_PAGE)}"
        if len(shown) > start + ROWS_A_PAGE
        else "",
        "previous_url": f"?{_query(errors=errors_only, start=max(start - ROWS_A_PAGE, 0))}"
        if start
        else "",
        "open": _detail(open_span, rows) if open_span else None,
    }
    return render(request, "traces/trace.html", context)


def _rows(run: Run, spans: list[SpanRow]) -> tuple[list[TraceRow], Timescale]:
    known = {span.id for span in spans}
    found = waits_of(run)
    waits = [wait for wait in found.shown if wait.interrupt_id not in known]
    times = [(span.started_at, span.ended_at) for span in spans]
    times += [(wait.started_at, wait.ended_at) for wait in waits]
    now = run.ended_at or clock.now()
    scale = Timescale(times, found.idle, now)
    return rows_of(run, lay_out(spans), waits, scale), scale


def _detail(span: SpanRow, rows: list[TraceRow]) -> dict[str, Any]:
    row = next(row for row in rows if row.span is span)
    parts = SpanPayload.objects.filter(span=span).order_by("part")
    return {
        "row": row,
        "span": span,
        "attrs": {key: value for key, value in span.attrs.items() if value not in (None, "", [])},
        "parts": [_part(part, redactor().reader(span.run_id)) for part in parts],
        "redactions": sorted(span.redactions.items()),
        "json": _as_json(span, row),
    }


def _part(payload: SpanPayload, shown: Callable[[Any], Any] | None) -> Part:
    try:
        value = json.loads(payload.body)
    except ValueError:
        value = payload.body  # it was cut, so it is no JSON any more
    value = shown(value) if shown else value
    fields = value.items() if isinstance(value, dict) else [("", value)]
    texts = [(str(name), _text(item)) for name, item in fields]
    short = [(name, text) for name, text in texts if name and _is_short(text)]
    long = [(name, text) for name, text in texts if not (name and _is_short(text))]
    return Part(payload.part, short, long, payload.truncated)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def _is_short(text: str) -> bool:
    return len(text) <= SHORT_CHARACTERS and "\n" not in text


def _as_json(span: SpanRow, row: TraceRow) -> str:
    fields = {
        "id": str(span.id),
        "parent_id": str(span.parent_id) if span.parent_id else None,
        "kind": span.kind,
        "name": span.name,
        "status": row.status,
        "epoch": span.epoch,
        "step": span.step,
        "started_at": span.started_at.isoformat(),
        "ended_at": span.ended_at.isoformat() if span.ended_at else None,
        "usage": {
            "input_tokens": span.input_tokens,
            "output_tokens": span.output_tokens,
            "cost_microusd": span.cost_microusd,
        },
        "attrs": span.attrs,
        "redactions": span.redactions,
    }
    return json.dumps(fields, indent=2, ensure_ascii=False)


def _chosen(spans: list[SpanRow], text: str) -> SpanRow | None:
    if not text:
        return None
    for span in spans:
        if str(span.id) == text:
            return span
    raise NotFound("There is no such span in this trace.")


def _redactions(spans: list[SpanRow]) -> list[tuple[str, int]]:
    counts: dict[str, int] = {}
    for span in spans:
        for label, number in span.redactions.items():
            counts[label] = counts.get(label, 0) + number
    return sorted(counts.items())


def _query(*, errors: bool, start: int) -> str:
    return urlencode({**({"errors": 1} if errors else {}), **({"from": start} if start else {})})


def _whole_number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0

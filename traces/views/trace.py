"""Traces: which runs left one, one run's spans as a tree, a log or JSON, and one span."""

from __future__ import annotations

import uuid
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from runtime_core import queries as core_queries
from runtime_core.errors import NotFound
from traces import queries
from traces.pages import caller, page
from traces.shown.span_detail import detail, page_as_json
from traces.shown.span_tree import Node
from traces.shown.trace_filters import WITH, TraceFilter
from traces.shown.trace_page import Choice, Trace, shown, trace_of
from traces.views.runs import filters_of, list_context


@page
@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """Runs with the numbers of their traces; search and filters are in the address."""
    narrowed = TraceFilter.of(request.GET)
    chosen = filters_of(request) | narrowed.chosen
    cursor = request.GET.get("cursor") or None
    found = core_queries.runs(
        caller(request).projects(),
        status=chosen["status"],
        agent=chosen["agent"],
        cursor=cursor,
        where=narrowed.where(),
    )
    summaries = queries.trace_summaries(run.id for run in found.items)
    context = list_context(request, chosen, found.next_cursor) | {
        "rows": [(run, summaries.get(run.id, queries.TraceSummary())) for run in found.items],
        "with_choices": WITH,
    }
    return render(request, "traces/traces.html", context)


@page
@require_safe
def show(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    """One trace; `span` opens a span, `view`, `errors`, `queue` and `siblings` choose rows, `from` pages."""
    trace = trace_of(core_queries.run(caller(request).projects(), run_id))
    choice = Choice.of(request.GET)
    chosen = _node(trace, choice.span) if choice.span else None
    context = _head(trace) | shown(trace, choice) | {"choice": choice}
    context |= {
        "tree_url": choice.url(view="tree"),
        "log_url": choice.url(view="log"),
        "json_url": choice.url(view="json"),
        "all_url": choice.url(errors=False),
        "errors_url": choice.url(errors=True),
        "queue_url": choice.url(queue=not choice.queue),
        "siblings_url": choice.url(whole=not choice.whole),
        "here_url": choice.url(span=choice.span),
        "query": choice.url().removeprefix("?"),
        "open": detail(trace, chosen) if chosen else None,
    }
    if choice.view == "json":
        context["json"] = page_as_json(context["rows"])
    return render(request, "traces/trace.html", context)


@page
@require_safe
@vary_on_headers("HX-Request")
def span(request: HttpRequest, run_id: uuid.UUID, span_id: uuid.UUID) -> HttpResponse:
    """One span on a page of its own; only its panel where a script asks."""
    trace = trace_of(core_queries.run(caller(request).projects(), run_id))
    open_ = detail(trace, _node(trace, str(span_id)))
    context = {"run": trace.run, "open": open_, "span": open_["span"], "row": open_["row"]}
    is_peek = request.headers.get("HX-Request") == "true"
    return render(request, "traces/_span.html" if is_peek else "traces/span.html", context)


def _head(trace: Trace) -> dict[str, Any]:
    run = trace.run
    return {
        "run": run,
        "all": len(trace.spans),
        "scale": trace.scale,
        "is_live": trace.is_live,
        "errors": trace.errors,
        "redactions": queries.redactions_of(run.id),
        "tokens": sum(s.input_tokens + s.output_tokens for s in trace.spans if s.kind == "llm"),
        "cut": len(trace.spans) >= queries.SPANS_READ,
    }


def _node(trace: Trace, span_id: str) -> Node:
    found = trace.node(span_id)
    if found is None:
        raise NotFound("There is no such span in this trace.")
    return found

"""Spans a second that are stored for good, and how long the server takes for the page of a trace."""

from __future__ import annotations

import datetime as dt
import time
import uuid
from collections.abc import Iterator
from typing import Any

from benchmarks.floor import Floor
from benchmarks.place import Place
from benchmarks.table import Figure

BATCH = 500
SIZES = {1_000: "150 ms (goal 60)", 10_000: "800 ms (goal 300)"}


def measure(place: Place, floor: Floor, rounds: int, batches: int, looks: int) -> Iterator[Figure]:
    """Redacted and committed by one connection; then the page as the view makes it."""
    run = place.start(place.agent("traced", [{"text": "Done."}]))
    found = floor.rounds(1, rounds, lambda: _rate(run.id, batches))
    noisy = " (noisy)" if found.noisy else ""
    yield Figure(
        f"17: spans stored/s, batches of {BATCH}",
        f"{found.ours:,.0f}/s",
        f"{found.floor:,.0f}/s",
        f"{found.ratio:.3f} R{noisy}",
        goal="2,000/s, 0.4 R (goal 5,000)",
    )
    for size, goal in SIZES.items():
        yield Figure.latency(
            f"18: page of a trace, {size:,} spans", _page(place, size, looks), goal
        )


def _rate(run_id: uuid.UUID, batches: int) -> float:
    from traces.spans import table

    made = [_spans(run_id, BATCH) for _ in range(batches)]
    began = time.perf_counter()
    for batch in made:
        table.upsert(batch)
    return batches * BATCH / (time.perf_counter() - began)


def _page(place: Place, size: int, looks: int) -> list[float]:
    from django.test import RequestFactory

    from traces.spans import table
    from traces.views import trace

    run = place.start("traced")
    for _ in range(size // BATCH):
        table.upsert(_spans(run.id, BATCH))
    request: Any = RequestFactory().get(f"/traces/{run.id}/")
    request.user = place.operator
    took = []
    for _ in range(looks + 1):
        began = time.perf_counter()
        answer = trace.show(request, run.id)
        took.append(time.perf_counter() - began)
        assert answer.status_code == 200
    return took[1:]  # the first look reads the templates


def _spans(run_id: uuid.UUID, count: int) -> list[Any]:
    """A model request and the tool that it asked for, again and again, with what went in and out."""
    from runtime_core import clock
    from runtime_core.ids import new_id
    from runtime_core.values import Span, Usage

    at, parent, made = clock.now(), run_id, []
    for number in range(count):
        is_model = number % 2 == 0
        span = Span(
            id=new_id(),
            run_id=run_id,
            parent_id=run_id if is_model else parent,
            kind="llm" if is_model else "tool",
            name="model of the benchmark" if is_model else "do_nothing",
            started_at=at + dt.timedelta(milliseconds=number),
            ended_at=at + dt.timedelta(milliseconds=number + 1),
            status="ok",
            step=number,
            usage=Usage(100, 20, 300) if is_model else Usage(),
            attrs={"model": "scripted"} if is_model else {"risk": "low", "why": "allowed"},
            input=None if is_model else {"number": number, "words": "amber river stone"},
            output="The next word is looked up. " * 7,
        )
        parent = span.id
        made.append(span)
    return made

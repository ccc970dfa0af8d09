"""What an export holds: the spans asked for, each passed through the redaction policies of today."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

from runtime_core.models import Run
from runtime_core.scope import Scope
from traces.exports.formats import Record
from traces.gate import redactor
from traces.models import ExportJob, SpanPayload, SpanRow
from traces.policies.redactor import Gate

BATCH = 500


def records(job: ExportJob) -> Iterator[Record]:
    """The spans in the order of their beginning, up to one more than the row cap."""
    # The manager of runs leaves out what is being deleted.
    runs = Run.objects.filter(project=job.project_id)
    if job.run_id:
        runs = runs.filter(id=job.run_id)
    rows = SpanRow.objects.filter(run_id__in=runs.values("id"))
    if job.since:
        rows = rows.filter(started_at__gte=job.since)
    if job.until:
        rows = rows.filter(started_at__lt=job.until)
    spans = rows.order_by("started_at", "id")[: job.row_cap + 1].iterator(chunk_size=BATCH)
    while batch := list(itertools.islice(spans, BATCH)):
        yield from _of_batch(job, batch)


def _of_batch(job: ExportJob, spans: list[SpanRow]) -> Iterator[Record]:
    runs = Run.objects.in_bulk({span.run_id for span in spans})
    agents = dict(Run.objects.filter(id__in=runs).values_list("id", "agent__name"))
    bodies = {
        (row.span_id, row.part): row.body for row in SpanPayload.objects.filter(span__in=spans)
    }
    for span in spans:
        run = runs.get(span.run_id)
        if run is None:
            continue  # deleted while this was being written
        gate = redactor().on("export", Scope(job.project_id, run.agent_id))
        parts = {part: bodies.get((span.id, part)) for part in ("input", "output")}
        yield _record(span, gate.text(agents[run.id]), parts, gate)


def _record(span: SpanRow, agent: str, parts: dict[str, str | None], gate: Gate) -> Record:
    return {
        "run_id": span.run_id,
        "span_id": span.id,
        "parent_id": span.parent_id,
        "agent": agent,
        "kind": span.kind,
        "name": gate.text(span.name),
        "status": span.status,
        "step": span.step,
        "started_at": span.started_at,
        "ended_at": span.ended_at,
        "input_tokens": span.input_tokens,
        "output_tokens": span.output_tokens,
        "cost_microusd": span.cost_microusd,
        "attrs": gate.redact(span.attrs).value,
        **{part: _clean(span, body, gate) for part, body in parts.items()},
    }


def _clean(span: SpanRow, body: str | None, gate: Gate) -> Any:
    if body is None:
        return None
    try:
        value = json.loads(body)
    except ValueError:
        value = body  # it was cut, so it is text
    done = gate.of_tool(span.name, value) if span.kind == "tool" else gate.redact(value)
    return done.value

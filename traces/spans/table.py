"""The span table: redacts spans and writes them so that an end is never undone by a late start."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.db import transaction

from runtime_core import prepared
from runtime_core.sanitize import clip, storable, storable_text
from runtime_core.values import Json, Span
from traces.gate import redactor
from traces.models import SpanRow
from traces.policies.redactor import Gate, scope_of_run
from traces.redact import Redacted

PAYLOAD_BYTES = 64_000
ATTRS_BYTES = 4_000
# These end with their worker; a run, and a wait for a person, outlive it.
OF_A_WORKER = ("step", "llm", "tool", "mcp", "subagent", "compensate", "checkpoint", "sandbox")
# What a tool got and gave: its own output policy says what of it is kept.
_OF_TOOLS = ("tool", "mcp", "subagent", "compensate")

# Nodes of graphs: their names are identifiers in the code, and hold nothing that was said.
_NAMED_IN_CODE = ("step",)
Row = dict[str, Any]

# A whole batch at once; no span may be in it twice.
_UPSERT = """
WITH put AS (
    INSERT INTO span (id, run_id, parent_id, kind, name, status, epoch, step, started_at, ended_at,
        input_tokens, output_tokens, cost_microusd, attrs, redactions)
    SELECT id, run_id, parent_id, kind, name, status, epoch, step, started_at, ended_at,
        input_tokens, output_tokens, cost_microusd, attrs::jsonb, redactions::jsonb
    FROM jsonb_to_recordset(%(spans)s::jsonb) AS x(
        id uuid, run_id uuid, parent_id uuid, kind text, name text, status text, epoch bigint, step int,
        started_at timestamptz, ended_at timestamptz, input_tokens bigint, output_tokens bigint,
        cost_microusd bigint, attrs text, redactions text)
    ON CONFLICT (id) DO UPDATE SET
        name = EXCLUDED.name, status = EXCLUDED.status, ended_at = EXCLUDED.ended_at,
        epoch = EXCLUDED.epoch,
        input_tokens = EXCLUDED.input_tokens, output_tokens = EXCLUDED.output_tokens,
        cost_microusd = EXCLUDED.cost_microusd, attrs = span.attrs || EXCLUDED.attrs,
        redactions = span.redactions || EXCLUDED.redactions
    WHERE span.run_id = EXCLUDED.run_id AND EXCLUDED.epoch >= span.epoch
        AND (span.ended_at IS NULL OR (EXCLUDED.ended_at IS NOT NULL AND span.status <> 'abandoned')
            OR (span.kind = 'run' AND EXCLUDED.epoch > span.epoch))
    RETURNING id
)
SELECT count(*) FROM put
"""
_PAYLOADS = """
WITH put AS (
    INSERT INTO span_payload (span_id, part, body, truncated)
    SELECT span.id, x.part, x.body, x.truncated
    FROM jsonb_to_recordset(%(payloads)s::jsonb) AS x(
        id uuid, run_id uuid, part text, body text, truncated bool)
    JOIN span ON span.id = x.id AND span.run_id = x.run_id
    ON CONFLICT (span_id, part) DO UPDATE SET body = EXCLUDED.body, truncated = EXCLUDED.truncated
    RETURNING span_id
)
SELECT count(*) FROM put
"""


def upsert(spans: Sequence[Span]) -> None:
    """Write the spans in one transaction; the same id again closes or completes its span."""
    rows, payloads = _made(_joined(spans))
    with transaction.atomic():
        for batch in _without_repeats(rows, ("id",)):
            prepared.rows(_UPSERT, {"spans": json.dumps(batch)})
        for batch in _without_repeats(payloads, ("id", "part")):
            prepared.rows(_PAYLOADS, {"payloads": json.dumps(batch)})


def _made(spans: Iterable[Span]) -> tuple[list[Row], list[Row]]:
    rows: list[Row] = []
    payloads: list[Row] = []
    for span in spans:
        row, parts = _clean(span)
        rows.append(row)
        payloads += parts
    return rows, payloads


def _without_repeats(rows: list[Row], key: tuple[str, ...]) -> Iterator[list[Row]]:
    """The rows in their order, in batches that no key is in twice."""
    batch: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        its = tuple(row[name] for name in key)
        if its in batch:
            yield [*batch.values()]
            batch = {}
        batch[its] = row
    if batch:
        yield [*batch.values()]


def abandon(run_id: uuid.UUID, before_epoch: int, at: dt.datetime) -> list[uuid.UUID]:
    """Close the spans that a lost worker left open; which those were."""
    left = SpanRow.objects.filter(
        run_id=run_id, epoch__lt=before_epoch, ended_at=None, kind__in=OF_A_WORKER
    )
    with transaction.atomic():
        ids = list(left.select_for_update().order_by().values_list("id", flat=True))
        SpanRow.objects.filter(id__in=ids).update(status="abandoned", ended_at=at)
    return ids


def _joined(spans: Sequence[Span]) -> Iterator[Span]:
    """Starts with their ends where both are here, as the statement would join them, at half of its cost."""
    kept: dict[tuple[uuid.UUID, uuid.UUID], Span] = {}
    for span in spans:
        key = (span.run_id, span.id)
        start = kept.get(key)
        if start is None:
            kept[key] = span
        elif start.ended_at is None and start.status != "abandoned" and span.epoch >= start.epoch:
            kept[key] = _ended(start, span)
        else:
            yield kept.pop(key)
            kept[key] = span
    yield from kept.values()


def _ended(start: Span, end: Span) -> Span:
    return dataclasses.replace(
        start,
        name=end.name,
        status=end.status,
        epoch=end.epoch,
        ended_at=end.ended_at,
        usage=end.usage,
        attrs={**start.attrs, **end.attrs},
        input=start.input if end.input is None else end.input,
        output=start.output if end.output is None else end.output,
    )


def _clean(span: Span) -> tuple[Row, list[Row]]:
    counts: dict[str, int] = {}
    gate = redactor().on("span", scope_of_run(span.run_id))
    parts = list(_payloads(span, gate, counts))
    attrs = _attrs(dict(span.attrs), gate, counts)
    row = {
        "id": str(span.id),
        "run_id": str(span.run_id),
        "parent_id": str(span.parent_id) if span.parent_id else None,
        "kind": span.kind[:16],
        "name": _name(span, gate, counts),
        "status": span.status,
        "epoch": span.epoch,
        "step": span.step,
        "started_at": span.started_at.isoformat(),
        "ended_at": span.ended_at.isoformat() if span.ended_at else None,
        "input_tokens": span.usage.input_tokens,
        "output_tokens": span.usage.output_tokens,
        "cost_microusd": span.usage.cost_microusd,
        "attrs": attrs,
        "redactions": json.dumps(counts),
    }
    return row, parts


def _payloads(span: Span, gate: Gate, counts: dict[str, int]) -> Iterator[dict[str, Any]]:
    for part, value in (("input", span.input), ("output", span.output)):
        if value is None:
            continue
        done = gate.of_tool(span.name, value) if span.kind in _OF_TOOLS else gate.redact(value)
        text = json.dumps(storable(_counted(done, counts)), ensure_ascii=False)
        body, truncated = clip(text, PAYLOAD_BYTES)
        yield {
            "id": str(span.id),
            "run_id": str(span.run_id),
            "part": part,
            "body": body,
            "truncated": truncated,
        }


def _name(span: Span, gate: Gate, counts: dict[str, int]) -> str:
    if span.kind in _NAMED_IN_CODE:
        return span.name[:200]
    return storable_text(_counted(gate.redact(span.name), counts))[:200]


def _attrs(attrs: dict[str, Json], gate: Gate, counts: dict[str, int]) -> str:
    if not attrs:
        return "{}"
    text = json.dumps(storable(_counted(gate.redact(attrs), counts)), ensure_ascii=False)
    if len(text.encode()) > ATTRS_BYTES:
        return json.dumps({"withheld": "too large", "bytes": len(text.encode())})
    return text


def _counted(done: Redacted, counts: dict[str, int]) -> Any:
    for label, number in done.counts.items():
        counts[label] = counts.get(label, 0) + number
    return done.value

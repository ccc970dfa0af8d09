"""The span table: redacts spans and writes them so that an end is never undone by a late start."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from django.db import connection, transaction

from runtime_core.sanitize import clip, storable, storable_text
from runtime_core.values import Json, Span
from traces.gate import redactor
from traces.models import SpanRow
from traces.policies.redactor import Gate, scope_of_run
from traces.redact import Redacted

PAYLOAD_BYTES = 64_000
ATTRS_BYTES = 4_000
# These end with their worker; a run, and a wait for a person, outlive it.
OF_A_WORKER = ("step", "llm", "tool", "checkpoint", "sandbox")

_UPSERT = """
INSERT INTO span (id, run_id, parent_id, kind, name, status, epoch, step, started_at, ended_at,
    input_tokens, output_tokens, cost_microusd, attrs, redactions)
VALUES (%(id)s, %(run_id)s, %(parent_id)s, %(kind)s, %(name)s, %(status)s, %(epoch)s, %(step)s,
    %(started_at)s, %(ended_at)s, %(input_tokens)s, %(output_tokens)s, %(cost_microusd)s,
    %(attrs)s::jsonb, %(redactions)s::jsonb)
ON CONFLICT (id) DO UPDATE SET
    name = EXCLUDED.name, status = EXCLUDED.status, ended_at = EXCLUDED.ended_at,
    input_tokens = EXCLUDED.input_tokens, output_tokens = EXCLUDED.output_tokens,
    cost_microusd = EXCLUDED.cost_microusd, attrs = span.attrs || EXCLUDED.attrs,
    redactions = span.redactions || EXCLUDED.redactions
WHERE span.run_id = EXCLUDED.run_id
    AND (span.ended_at IS NULL OR (EXCLUDED.ended_at IS NOT NULL AND span.status <> 'abandoned'))
"""
_PAYLOAD = """
INSERT INTO span_payload (span_id, part, body, truncated)
SELECT id, %(part)s, %(body)s, %(truncated)s FROM span WHERE id = %(id)s AND run_id = %(run_id)s
ON CONFLICT (span_id, part) DO UPDATE SET body = EXCLUDED.body, truncated = EXCLUDED.truncated
"""


def upsert(spans: Sequence[Span]) -> None:
    """Write the spans in one transaction; the same id again closes or completes its span."""
    made = [_clean(span) for span in _joined(spans)]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.executemany(_UPSERT, [row for row, _ in made])
        payloads = [payload for _, parts in made for payload in parts]
        if payloads:
            cursor.executemany(_PAYLOAD, payloads)


def abandon(run_id: uuid.UUID, before_epoch: int, at: dt.datetime) -> int:
    """Close the spans that a lost worker left open; how many those were."""
    return SpanRow.objects.filter(
        run_id=run_id, epoch__lt=before_epoch, ended_at=None, kind__in=OF_A_WORKER
    ).update(status="abandoned", ended_at=at)


def _joined(spans: Sequence[Span]) -> Iterator[Span]:
    """Starts with their ends where both are here, as the statement would join them, at half of its cost."""
    kept: dict[tuple[uuid.UUID, uuid.UUID], Span] = {}
    for span in spans:
        key = (span.run_id, span.id)
        start = kept.get(key)
        if start is None:
            kept[key] = span
        elif start.ended_at is None and start.status != "abandoned":
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
        ended_at=end.ended_at,
        usage=end.usage,
        attrs={**start.attrs, **end.attrs},
        input=start.input if end.input is None else end.input,
        output=start.output if end.output is None else end.output,
    )


def _clean(span: Span) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    counts: dict[str, int] = {}
    gate = redactor().on("span", scope_of_run(span.run_id))
    parts = list(_payloads(span, gate, counts))
    attrs = _attrs(dict(span.attrs), gate, counts)
    row = {
        "id": span.id,
        "run_id": span.run_id,
        "parent_id": span.parent_id,
        "kind": span.kind[:16],
        "name": storable_text(_counted(gate.redact(span.name), counts))[:200],
        "status": span.status,
        "epoch": span.epoch,
        "step": span.step,
        "started_at": span.started_at,
        "ended_at": span.ended_at,
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
        done = gate.of_tool(span.name, value) if span.kind == "tool" else gate.redact(value)
        text = json.dumps(storable(_counted(done, counts)), ensure_ascii=False)
        body, truncated = clip(text, PAYLOAD_BYTES)
        yield {
            "id": span.id,
            "run_id": span.run_id,
            "part": part,
            "body": body,
            "truncated": truncated,
        }


def _attrs(attrs: dict[str, Json], gate: Gate, counts: dict[str, int]) -> str:
    text = json.dumps(storable(_counted(gate.redact(attrs), counts)), ensure_ascii=False)
    if len(text.encode()) > ATTRS_BYTES:
        return json.dumps({"withheld": "too large", "bytes": len(text.encode())})
    return text


def _counted(done: Redacted, counts: dict[str, int]) -> Any:
    for label, number in done.counts.items():
        counts[label] = counts.get(label, 0) + number
    return done.value

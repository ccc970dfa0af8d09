"""Retention: a sweep of a hundred thousand old spans with what went in and out of them."""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks.place import Place
from benchmarks.table import Figure

_RUNS = """
WITH made AS (
    INSERT INTO thread (id, project_id, created_by_id, metadata, created_at)
    SELECT gen_random_uuid(), project_id, created_by_id, '{}', now() FROM run, generate_series(1, %(count)s)
    WHERE run.id = %(like)s RETURNING id
)
INSERT INTO run SELECT (jsonb_populate_record(old, jsonb_build_object('id', gen_random_uuid(), 'thread_id', made.id,
    'status', 'completed', 'ended_at', now() - interval '100 days'))).* FROM made, run old WHERE old.id = %(like)s
"""
_SPANS = """
INSERT INTO span (id, run_id, kind, name, status, epoch, started_at, ended_at, input_tokens, output_tokens,
    cost_microusd, attrs, redactions)
SELECT gen_random_uuid(), run.id, 'tool', 'read_file', 'ok', 1, now() - interval '100 days',
    now() - interval '100 days', 0, 0, 0, '{}', '{}'
FROM run, generate_series(1, %(each)s) WHERE ended_at < now() - interval '99 days'
"""
_PAYLOADS = """
INSERT INTO span_payload (span_id, part, body, truncated)
SELECT id, 'output', repeat('x', 400), false FROM span WHERE ended_at < now() - interval '99 days'
"""


def sweep(place: Place, spans: int) -> Iterator[Figure]:
    """The time of the whole sweep, its longest transaction, and what a second one finds."""
    from django.db import connection

    from traces.models import RetentionTotal
    from traces.retention.sweep import sweep as let_go

    run = place.start(place.agent("kept", [{"text": "Done."}]))
    each = 200
    with connection.cursor() as cursor:
        cursor.execute(_RUNS, {"count": spans // each, "like": run.id})
        cursor.execute(_SPANS, {"each": each})
        cursor.execute(_PAYLOADS)
        cursor.execute("ANALYZE run, span, span_payload")
    began = time.perf_counter()
    first = let_go(False, lambda *_: None)
    took = time.perf_counter() - began
    longest = max(RetentionTotal.objects.values_list("longest_ms", flat=True)) / 1000
    second = let_go(False, lambda *_: None)
    assert first["spans"] == spans, first
    name = f"retention of {spans:,} spans with their payloads"
    yield Figure(name, f"{took:.1f} s", goal="10 s")
    yield Figure.latency("its longest transaction", [longest], "200")
    yield Figure("rows that a second sweep finds", str(sum(second.values())), goal="0")

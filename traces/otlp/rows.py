"""Stored spans as OpenTelemetry's: read back whole, and redacted once more by the rules of today."""

from __future__ import annotations

import datetime as dt
import functools
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags

from runtime_core.models import Run
from runtime_core.sanitize import clip
from traces.gate import redactor
from traces.models import SpanPayload, SpanRow
from traces.otlp import genai
from traces.policies.redactor import Gate, scope_of_run

RESOURCE = Resource({"service.name": "interlock"})
SCOPE = InstrumentationScope("interlock", schema_url=genai.SCHEMA_URL)
# Work is handed down a few levels only; a chain beyond that is not followed.
LEVELS = 20
# What a receiver takes in one attribute without cutting it.
CONTENT_BYTES = 32_000


@dataclass(frozen=True, slots=True)
class Home:
    """What a run's spans have in common."""

    trace: uuid.UUID
    parent: uuid.UUID | None
    thread: uuid.UUID
    project: str


def ended(ids: Sequence[uuid.UUID], *, content: bool) -> list[ReadableSpan]:
    """The spans of these ids that have ended and whose run is there."""
    rows = SpanRow.objects.filter(id__in=ids, ended_at__isnull=False)
    payloads: dict[uuid.UUID, list[SpanPayload]] = {}
    if content:
        for payload in SpanPayload.objects.filter(span_id__in=ids):
            payloads.setdefault(payload.span_id, []).append(payload)
    made = (_made(row, payloads.get(row.id, []), content=content) for row in rows)
    return [span for span in made if span is not None]


def _made(row: SpanRow, payloads: list[SpanPayload], *, content: bool) -> ReadableSpan | None:
    home = _home(row.run_id)
    if home is None:
        return None
    gate = redactor().on("export", scope_of_run(row.run_id))
    row.name = str(gate.redact(row.name).value)
    row.attrs = _mapping(gate.redact(row.attrs).value)
    attributes = genai.attributes(row, row.attrs, content=content)
    attributes["gen_ai.conversation.id"] = str(home.thread)
    attributes["interlock.project"] = home.project
    for payload in payloads:
        key, text = genai.payload(row, payload.part, _clean(row, payload, gate))
        attributes[key] = clip(text, CONTENT_BYTES)[0]
    parent = row.parent_id or _caller(row, home)
    return ReadableSpan(
        name=genai.name(row, row.attrs),
        context=_context(home.trace, row.id),
        parent=_context(home.trace, parent) if parent else None,
        resource=RESOURCE,
        attributes=attributes,
        kind=genai.kind(row),
        status=_status(row),
        start_time=_nanoseconds(row.started_at),
        end_time=_nanoseconds(row.ended_at or row.started_at),
        instrumentation_scope=SCOPE,
    )


def _mapping(value: Any) -> dict[str, Any]:
    """A redactor that failed gives a text in place of the whole."""
    return value if isinstance(value, dict) else {"withheld": str(value)}


def _clean(row: SpanRow, payload: SpanPayload, gate: Gate) -> Any:
    value = payload.body if payload.truncated else json.loads(payload.body)
    done = gate.of_tool(row.name, value) if row.kind in genai.OF_TOOLS else gate.redact(value)
    return done.value


def _home(run_id: uuid.UUID) -> Home | None:
    """A run may be committed after its first spans: only what was found is remembered."""
    try:
        return _known_home(run_id)
    except Run.DoesNotExist:
        return None


@functools.lru_cache(maxsize=5_000)
def _known_home(run_id: uuid.UUID) -> Home:
    run = Run.objects.select_related("project").only(
        "thread_id", "parent_id", "parent_call", "project__slug"
    ).get(id=run_id)  # fmt: skip
    parent = run.parent_id if run.parent_call else None
    return Home(_root(run_id, parent), parent, run.thread_id, run.project.slug)


def _root(run_id: uuid.UUID, parent: uuid.UUID | None) -> uuid.UUID:
    for _ in range(LEVELS):
        if parent is None:
            break
        run_id = parent
        parent = (
            Run.objects.filter(id=run_id, parent_call__isnull=False)
            .values_list("parent_id", flat=True)
            .first()
        )
    return run_id


def _caller(row: SpanRow, home: Home) -> uuid.UUID | None:
    """The call that a run works for, as the last worker that made it; else the run that made it."""
    if home.parent is None:
        return None
    calls = SpanRow.objects.filter(
        run_id=home.parent, kind="subagent", attrs__run=str(row.run_id)
    ).order_by("-epoch")
    return calls.values_list("id", flat=True).first() or home.parent


def _context(trace: uuid.UUID, span: uuid.UUID) -> SpanContext:
    # The lower half: the upper one of time-ordered ids is the same for what began together.
    return SpanContext(
        trace.int, span.int & (2**64 - 1), is_remote=False, trace_flags=TraceFlags(1)
    )


def _status(row: SpanRow) -> Status:
    if row.status in ("error", "abandoned"):
        return Status(StatusCode.ERROR)
    return Status(StatusCode.UNSET)


def _nanoseconds(at: dt.datetime) -> int:
    since = at - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    return (since // dt.timedelta(microseconds=1)) * 1_000

"""Traces and audit over HTTP: what the pages show, as JSON."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import ConfigDict

from runtime_core import queries as core_queries
from runtime_core.api.auth import caller
from runtime_core.errors import InvalidInput
from runtime_core.limits import limits
from runtime_core.sanitize import storable_text
from traces import queries
from traces.gate import redactor
from traces.models import AuditEntry, SpanPayload, SpanRow
from traces.personal import reveal

router = Router(tags=["traces"])

SPANS_A_PAGE = 1_000


class TraceOut(Schema):
    """One run's trace in numbers."""

    run_id: uuid.UUID
    title: str
    agent: str
    status: str
    spans: int
    errors: int
    tokens: int
    created_at: dt.datetime
    ended_at: dt.datetime | None


class TracesOut(Schema):
    """A page of traces."""

    items: list[TraceOut]
    next_cursor: str | None


class SpanOut(Schema):
    """One span, redacted. `input` and `output` are null where nothing was recorded."""

    id: uuid.UUID
    parent_id: uuid.UUID | None
    kind: str
    name: str
    status: str
    step: int | None
    epoch: int
    started_at: dt.datetime
    ended_at: dt.datetime | None
    usage: dict[str, int]
    attrs: dict[str, Any]
    redactions: dict[str, int]
    input: Any = None
    output: Any = None


class SpansOut(Schema):
    """A page of one trace's spans, in the order in which they began."""

    run_id: uuid.UUID
    items: list[SpanOut]
    next_cursor: str | None


class AuditOut(Schema):
    """One entry; `seq`, `prev_hash` and `hash` are null until it is sealed."""

    id: uuid.UUID
    seq: int | None
    at: dt.datetime
    actor: dict[str, Any]
    action: str
    object: dict[str, str]
    project_id: uuid.UUID | None
    run_id: uuid.UUID | None
    data: dict[str, Any]
    prev_hash: str | None
    hash: str | None


class AuditPageOut(Schema):
    """A page of the audit, newest first."""

    items: list[AuditOut]
    next_cursor: str | None


@router.get("/traces", response=TracesOut, summary="List traces")
def traces(
    request: HttpRequest,
    status: str = "",
    agent: str = "",
    cursor: str = "",
    limit: int | None = None,
) -> TracesOut:
    """The newest runs with the numbers of their traces."""
    found = core_queries.runs(
        caller(request).projects(),
        status=status,
        agent=storable_text(agent),
        cursor=cursor,
        limit=limit,
    )
    numbers = queries.trace_summaries(run.id for run in found.items)
    items = [
        TraceOut(
            run_id=run.id,
            title=run.title,
            agent=run.agent.name,
            status=run.status,
            spans=(summary := numbers.get(run.id, queries.TraceSummary())).spans,
            errors=summary.errors,
            tokens=summary.tokens,
            created_at=run.created_at,
            ended_at=run.ended_at,
        )
        for run in found.items
    ]
    return TracesOut(items=items, next_cursor=found.next_cursor)


@router.get("/runs/{uuid:run_id}/trace", response=SpansOut, summary="A run's spans")
def trace(request: HttpRequest, run_id: uuid.UUID, cursor: str = "") -> SpansOut:
    """The spans with what went in and out, a thousand a page."""
    run = core_queries.run(caller(request).projects(), run_id)
    spans, following = queries.span_page(run.id, cursor or None, SPANS_A_PAGE)
    parts: dict[tuple[uuid.UUID, str], str] = {
        (row.span_id, row.part): row.body for row in SpanPayload.objects.filter(span__in=spans)
    }
    shown = redactor().reader(run.id)
    return SpansOut(
        run_id=run.id, items=[_span(span, parts, shown) for span in spans], next_cursor=following
    )


class RevealIn(Schema):
    """Why personal data is to be shown; the audit keeps it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    reason: str


class LineOut(Schema):
    """One thing that was said, called or answered."""

    who: str
    text: str


class PersonalOut(Schema):
    """A run's conversation with personal data in it; secrets stay hidden."""

    run_id: uuid.UUID
    lines: list[LineOut]


@router.post("/runs/{uuid:run_id}/personal", response=PersonalOut, summary="Show personal data")
def personal(request: HttpRequest, run_id: uuid.UUID, payload: RevealIn) -> PersonalOut:
    """What was said in a run, for auditors and admins, with personal data; each look is in the audit."""
    who = caller(request)
    run = core_queries.run(who.projects(), run_id)
    said = reveal(who, run, payload.reason)
    return PersonalOut(run_id=run.id, lines=[LineOut(who=one.who, text=one.text) for one in said])


@router.get("/audit", response=AuditPageOut, summary="The audit")
def audit(
    request: HttpRequest,
    action: str = "",
    run_id: str = "",
    cursor: str = "",
    limit: int | None = None,
) -> AuditPageOut:
    """Entries of the caller's projects and the caller's own, newest first."""
    rows = queries.audit_entries(caller(request))
    if action:
        rows = rows.filter(action=storable_text(action))
    if run_id:
        rows = rows.filter(run_id=_uuid(run_id, "run_id"))
    size = limits().page_size if limit is None else limit
    if not 1 <= size <= limits().page_size_max:
        raise InvalidInput(f"limit must be from 1 to {limits().page_size_max}.", field="limit")
    page = queries.audit_page(rows, _uuid(cursor, "cursor") if cursor else None, size)
    return AuditPageOut(items=[_entry(entry) for entry in page.items], next_cursor=page.next_cursor)


def _span(
    span: SpanRow,
    parts: dict[tuple[uuid.UUID, str], str],
    shown: Callable[[Any], Any] | None,
) -> SpanOut:
    return SpanOut(
        id=span.id,
        parent_id=span.parent_id,
        kind=span.kind,
        name=span.name,
        status=span.status,
        step=span.step,
        epoch=span.epoch,
        started_at=span.started_at,
        ended_at=span.ended_at,
        usage={
            "input_tokens": span.input_tokens,
            "output_tokens": span.output_tokens,
            "cost_microusd": span.cost_microusd,
        },
        attrs=span.attrs,
        redactions=span.redactions,
        input=_value(parts.get((span.id, "input")), shown),
        output=_value(parts.get((span.id, "output")), shown),
    )


def _value(body: str | None, shown: Callable[[Any], Any] | None) -> Any:
    if body is None:
        return None
    try:
        value = json.loads(body)
    except ValueError:
        value = body  # it was cut, so it is text
    return shown(value) if shown else value


def _entry(entry: AuditEntry) -> AuditOut:
    payload = getattr(entry, "payload", None)
    return AuditOut(
        id=entry.id,
        seq=entry.seq,
        at=entry.at,
        actor={"id": entry.actor_id, "name": entry.actor_name, "via": entry.via},
        action=entry.action,
        object={"type": entry.object_type, "id": entry.object_id},
        project_id=entry.project_id,
        run_id=entry.run_id,
        data=json.loads(payload.body) if payload else {},
        prev_hash=entry.prev_hash or None,
        hash=entry.hash or None,
    )


def _uuid(text: str, field: str) -> uuid.UUID:
    try:
        return uuid.UUID(text)
    except ValueError as error:
        raise InvalidInput(f"{field} is not an id.", field=field) from error

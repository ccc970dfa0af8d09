"""Reads for the pages of this side, each inside the projects that the caller can see."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from django.db.models import Count, Max, Min, Q, QuerySet, Sum

from runtime_core import clock
from runtime_core.access import ROLE_ALLOWS, Can
from runtime_core.callers import Caller
from runtime_core.errors import InvalidInput
from runtime_core.models import Agent, Interrupt, Membership, Project, Run
from runtime_core.queries import Page
from runtime_core.states import ENDED, InterruptStatus, RunStatus
from traces.models import AuditEntry, SpanRow

SPANS_READ = 50_000
LIVE = sorted(s.value for s in RunStatus if s not in ENDED)
TODAY = dt.timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """The spans of one run in numbers."""

    spans: int = 0
    errors: int = 0
    still_open: int = 0
    tokens: int = 0
    started_at: dt.datetime | None = None
    ended_at: dt.datetime | None = None


@dataclass(slots=True)
class Bone:
    """A span without what it says: light enough for tens of thousands of them."""

    id: uuid.UUID
    parent_id: uuid.UUID | None
    kind: str
    name: str
    status: str
    epoch: int
    step: int | None
    started_at: dt.datetime
    ended_at: dt.datetime | None
    input_tokens: int
    output_tokens: int
    cost_microusd: int


_BONE = tuple(field.name for field in fields(Bone))


def projects_where(caller: Caller, right: Can) -> QuerySet[Project]:
    """The projects in which the caller has a right; decisions are never a superuser's by rank."""
    visible = caller.projects()
    if caller.user.is_superuser and right is not Can.DECIDE:
        return visible
    roles = [role for role, allows in ROLE_ALLOWS.items() if right in allows]
    mine = Membership.objects.filter(user=caller.user, role__in=roles)
    return visible.filter(id__in=mine.values("project_id"))


def startable_agents(caller: Caller) -> QuerySet[Agent]:
    """The agents that the caller may start runs of."""
    projects = projects_where(caller, Can.OPERATE)
    return (
        Agent.objects.filter(project__in=projects, current__isnull=False)
        .select_related("current", "project")
        .order_by("project__slug", "name")
    )


def agent_names(caller: Caller) -> list[str]:
    """The names to filter runs by."""
    rows = Agent.objects.filter(project__in=caller.projects()).order_by("name")
    return list(rows.values_list("name", flat=True).distinct()[:200])


def needs(caller: Caller, limit: int) -> list[Interrupt]:
    """What waits for a decision that the caller may make, the most urgent first."""
    rows = Interrupt.objects.filter(
        project__in=projects_where(caller, Can.DECIDE), status=InterruptStatus.OPEN
    )
    return list(rows.select_related("run", "tool_call", "run__agent")[:limit])


def live_runs(caller: Caller, limit: int) -> list[Run]:
    """Runs that have not ended, the newest first."""
    return list(_runs(caller).filter(status__in=LIVE).order_by("-created_at")[:limit])


def failed_runs(caller: Caller, limit: int) -> list[Run]:
    """Runs that failed in the last 24 hours."""
    bad = [RunStatus.FAILED, RunStatus.TIMED_OUT]
    rows = _runs(caller).filter(status__in=bad, ended_at__gt=clock.now() - TODAY)
    return list(rows.order_by("-ended_at")[:limit])


def recent_runs(caller: Caller, limit: int) -> list[Run]:
    """Runs that ended, the newest first."""
    rows = _runs(caller).exclude(status__in=LIVE)
    return list(rows.order_by("-created_at")[:limit])


def trace_summaries(run_ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, TraceSummary]:
    """The numbers of each run's trace. Only model requests have tokens: nothing counts twice."""
    rows = SpanRow.objects.filter(run_id__in=list(run_ids)).order_by().values("run_id")
    llm = Q(kind="llm")
    rows = rows.annotate(
        spans=Count("id"),
        errors=Count("id", filter=Q(status="error")),
        still_open=Count("id", filter=Q(ended_at=None)),
        tokens_in=Sum("input_tokens", filter=llm, default=0),
        tokens_out=Sum("output_tokens", filter=llm, default=0),
        first=Min("started_at"),
        last=Max("ended_at"),
    )
    return {row["run_id"]: _summary(dict(row)) for row in rows}


def bones_of(run_id: uuid.UUID) -> list[Bone]:
    """What the tree needs to know of each of the run's spans."""
    rows = SpanRow.objects.filter(run_id=run_id).order_by("started_at", "id")
    return [Bone(*row) for row in rows.values_list(*_BONE)[:SPANS_READ].iterator(10_000)]


def redactions_of(run_id: uuid.UUID) -> list[tuple[str, int]]:
    """What was taken out of the run's spans, by class."""
    counts: dict[str, int] = {}
    rows = SpanRow.objects.filter(run_id=run_id).exclude(redactions={}).order_by()
    for found in rows.values_list("redactions", flat=True)[:SPANS_READ]:
        for label, number in found.items():
            counts[label] = counts.get(label, 0) + number
    return sorted(counts.items())


def span_page(run_id: uuid.UUID, cursor: str | None, size: int) -> tuple[list[SpanRow], str | None]:
    """Spans in the order in which they began, and the cursor to those after them."""
    rows = SpanRow.objects.filter(run_id=run_id)
    if cursor:
        start, span_id = _span_cursor(cursor)
        rows = rows.filter(Q(started_at__gt=start) | Q(started_at=start, id__gt=span_id))
    found = list(rows.order_by("started_at", "id")[: size + 1])
    if len(found) <= size:
        return found, None
    last = found[size - 1]
    return found[:size], f"{last.started_at.isoformat()}~{last.id}"


def _span_cursor(text: str) -> tuple[dt.datetime, uuid.UUID]:
    start, _, span_id = text.partition("~")
    try:
        # A plus sign that nobody escaped arrives as a blank.
        return dt.datetime.fromisoformat(start.replace(" ", "+")), uuid.UUID(span_id)
    except ValueError as error:
        raise InvalidInput(
            "cursor is not one that this list gave; start without it.", field="cursor"
        ) from error


def audit_entries(caller: Caller) -> QuerySet[AuditEntry]:
    """Entries of the caller's projects, and their own; a superuser sees all."""
    rows = AuditEntry.objects.select_related("payload")
    if caller.user.is_superuser and caller.token_project is None:
        return rows
    projects = list(caller.projects().values_list("id", flat=True))
    mine = Q(project_id__in=projects)
    if caller.token_project is None:
        mine |= Q(project_id=None, actor_id=caller.user.pk)
    return rows.filter(mine)


def audit_page(
    rows: QuerySet[AuditEntry], cursor: uuid.UUID | None, limit: int
) -> Page[AuditEntry]:
    """The newest entries before the cursor, which is the last one's id."""
    if cursor is not None:
        rows = rows.filter(id__lt=cursor)
    found = list(rows.order_by("-id")[: limit + 1])
    more = len(found) > limit
    return Page(found[:limit], str(found[limit - 1].id) if more else None)


def _runs(caller: Caller) -> QuerySet[Run]:
    return Run.objects.filter(project__in=caller.projects()).select_related("agent", "created_by")


def _summary(row: dict[str, Any]) -> TraceSummary:
    return TraceSummary(
        spans=row["spans"],
        errors=row["errors"],
        still_open=row["still_open"],
        tokens=row["tokens_in"] + row["tokens_out"],
        started_at=row["first"],
        ended_at=row["last"],
    )

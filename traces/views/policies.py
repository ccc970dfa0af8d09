"""The page of policies: what is kept how long, held, and redacted, in words, for auditors and admins."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from runtime_core.access import Can
from runtime_core.errors import NotAllowed
from runtime_core.models import Agent
from traces import holds, queries
from traces.models import (
    DataClass,
    LegalHold,
    RedactionPolicy,
    RetentionPolicy,
    RetentionTotal,
)
from traces.pages import caller, page
from traces.retention.policy import DEFAULT_DAYS, in_words, kept
from traces.retention.sweep import count

HOLDS_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Line:
    """One class of data: how long it is kept, where otherwise, what is due, and when it was last swept."""

    label: str
    days: str
    is_default: bool
    elsewhere: list[str]
    due: int
    total: RetentionTotal | None


@page
@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """What holds for the projects in which one may see personal data, and what is due there."""
    projects = list(queries.projects_where(caller(request), Can.SEE_PERSONAL))
    if not projects:
        raise NotAllowed(
            "This page is for auditors and admins. Ask an admin of a project to make you one.",
            right="see_personal",
        )
    names = {project.id: project.name for project in projects}
    context = {
        "lines": _lines(names),
        "holds": _holds(request, names),
        "redaction": _redaction(names),
        "may_change": request.user.is_superuser,
    }
    return render(request, "traces/policies.html", context)


def _lines(names: dict[uuid.UUID, str]) -> list[Line]:
    totals = {row.data_class: row for row in RetentionTotal.objects.all()}
    return [_line(data_class, names, totals.get(data_class)) for data_class in DataClass]


def _line(data_class: DataClass, names: dict[uuid.UUID, str], total: RetentionTotal | None) -> Line:
    found = kept(data_class)
    agents = Agent.objects.filter(id__in=found.agents, project__in=names)
    elsewhere = [
        f"{names[uuid.UUID(id_)]}: {in_words(days)}"
        for id_, days in found.projects.items()
        if uuid.UUID(id_) in names
    ]
    elsewhere += [f"agent {a.name}: {in_words(found.agents[str(a.id)])}" for a in agents]
    return Line(
        label=data_class.label,
        days=in_words(found.days),
        is_default=found.days == DEFAULT_DAYS[data_class]
        and not RetentionPolicy.objects.filter(data_class=data_class, scope="global").exists(),
        elsewhere=elsewhere,
        due=count(data_class, found, list(names)),
        total=total,
    )


def _holds(request: HttpRequest, names: dict[uuid.UUID, str]) -> list[LegalHold]:
    rows = LegalHold.objects.filter(released_at=None).select_related("set_by")[:HOLDS_SHOWN]
    if request.user.is_superuser:
        return list(rows)
    return [row for row in rows if _project_of(row) in names]


def _project_of(hold: LegalHold) -> uuid.UUID | None:
    found = holds.subject(hold.kind, hold.object_id)
    return found.project_id if found else None


def _redaction(names: dict[uuid.UUID, str]) -> list[dict[str, Any]]:
    rows = RedactionPolicy.objects.order_by("name", "-version").distinct("name")
    here = [row for row in rows.select_related("agent", "project") if _is_here(row, names)]
    return [{"policy": row, "rules": row.rules.count()} for row in here]


def _is_here(policy: RedactionPolicy, names: dict[uuid.UUID, str]) -> bool:
    project_id = policy.agent.project_id if policy.agent else policy.project_id
    return policy.enabled and (project_id is None or project_id in names)

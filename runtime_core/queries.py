"""Reads for API and pages. Each takes the projects that the caller can see, and finds nothing outside them.

Lists come as a page and an opaque cursor to the next one: by key, so that a page stays right while rows are added.
"""

from __future__ import annotations

import base64
import datetime as dt
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.core.exceptions import ValidationError
from django.db.models import Count, F, Model, OuterRef, Q, QuerySet, Subquery, Sum

from runtime_core import clock
from runtime_core.errors import InvalidInput, NotFound
from runtime_core.limits import limits
from runtime_core.loop.compensation import Outlook, outlook
from runtime_core.models import (
    Agent,
    Checkpoint,
    Interrupt,
    Project,
    Run,
    Step,
    Thread,
    ToolCall,
)
from runtime_core.states import ENDED, InterruptStatus, RunStatus

Projects = QuerySet[Project] | Collection[uuid.UUID]
M = TypeVar("M", bound=Model)

INBOX_IDS = 500


@dataclass(frozen=True, slots=True)
class Page(Generic[M]):
    """Some rows, and the cursor that asks for those after them (None: there are no more)."""

    items: Sequence[M]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class InboxSummary:
    """How many interrupts are open, and the ids of the most urgent ones."""

    open: int
    ids: Sequence[uuid.UUID]


@dataclass(frozen=True, slots=True)
class Dashboard:
    """The numbers of the start page, for the caller's projects."""

    by_status: Mapping[str, int]
    open_interrupts: int
    next_expiry: dt.datetime | None
    started_today: int
    failed_today: int
    cost_microusd_today: int
    tokens_today: int


# ── Runs ────────────────────────────────────────────────────────────────────────────────────────


def runs(
    projects: Projects,
    *,
    status: str | None = None,
    agent: str | None = None,
    thread_id: uuid.UUID | None = None,
    cursor: str | None = None,
    limit: int | None = None,
    where: Q | None = None,
) -> Page[Run]:
    """The newest runs first, with agent and version; filters are exact, `where` is any more of them."""
    rows = Run.objects.filter(project__in=projects).select_related("agent", "agent_version")
    if status:
        rows = rows.filter(status=_known_status(status))
    if agent:
        rows = rows.filter(agent__name=agent)
    if thread_id:
        rows = rows.filter(thread_id=thread_id)
    if where:
        rows = rows.filter(where)
    return paged(rows, ("-created_at", "-id"), cursor, limit)


def run(projects: Projects, run_id: uuid.UUID) -> Run:
    """One run with agent, version and project; NotFound outside the caller's projects."""
    rows = Run.objects.select_related("agent", "agent_version", "project", "thread")
    found = rows.filter(project__in=projects, id=run_id).first()
    if found is None:
        raise NotFound("There is no such run, or you may not see it.")
    return found


def run_head(projects: Projects, run_id: uuid.UUID) -> tuple[int, RunStatus]:
    """A run's newest sequence number and its status, read together; NotFound outside the caller's projects."""
    rows = Run.objects.filter(project__in=projects, id=run_id)
    head = rows.values_list("last_seq", "status").first()
    if head is None:
        raise NotFound("There is no such run, or you may not see it.")
    return head[0], RunStatus(head[1])


def open_interrupts(run_ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, list[uuid.UUID]]:
    """The open interrupts of each of the runs, in the order in which they expire."""
    found: dict[uuid.UUID, list[uuid.UUID]] = {id_: [] for id_ in run_ids}
    rows = Interrupt.objects.filter(run_id__in=found, status=InterruptStatus.OPEN.value)
    for run_id, interrupt_id in rows.values_list("run_id", "id"):
        found[run_id].append(interrupt_id)
    return found


def children(run_ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, list[Run]]:
    """The runs that work, or have worked, on tool calls of each of the runs, oldest first."""
    found: dict[uuid.UUID, list[Run]] = {id_: [] for id_ in run_ids}
    rows = Run.objects.filter(parent__in=found, parent_call__isnull=False)
    for child in rows.select_related("agent").order_by("created_at", "id"):
        if child.parent_id:
            found[child.parent_id].append(child)
    return found


def tool_calls(run: Run, *, cursor: str | None = None, limit: int | None = None) -> Page[ToolCall]:
    """The run's ledger in order; each row has `interrupt_id`, the newest interrupt that asked about it."""
    newest = Interrupt.objects.filter(tool_call=OuterRef("pk")).order_by("-created_at", "-id")
    rows = ToolCall.objects.filter(run=run).annotate(interrupt_id=Subquery(newest.values("id")[:1]))
    rows = rows.defer("args_text", "result_text")
    return paged(rows, ("step", "position"), cursor, limit)


def effects(run: Run) -> Outlook:
    """What the run did to the world outside: what of it stays, can be taken back, and has been."""
    return outlook(run)


def checkpoints(
    run: Run, *, cursor: str | None = None, limit: int | None = None
) -> Page[Checkpoint]:
    """The run's checkpoints, oldest first."""
    return paged(Checkpoint.objects.filter(run=run), ("id",), cursor, limit)


def _models_used(run: Run) -> list[str]:
    """Which models have answered: the agent's own, or a fallback where that one was not to be had."""
    answered = Step.objects.filter(run=run, kind="model", status="succeeded")
    return sorted({str(name) for name in answered.values_list("detail__model", flat=True) if name})


def provenance(run: Run) -> dict[str, Any]:
    """What exactly runs: the agent's version and definition by digest, and where the run comes from."""
    version = run.agent_version
    definition = version.definition
    calls = ToolCall.objects.filter(run=run).order_by("tool", "schema_digest")
    schemas = calls.values_list("tool", "schema_digest").distinct()
    return {
        "run_id": str(run.id),
        "agent": run.agent.name,
        "agent_version": version.number,
        "agent_digest": version.digest,
        "engine": definition.get("engine"),
        "model": definition.get("model"),
        "fallback_models": definition.get("fallback_models", []),
        "models_used": _models_used(run),
        "script": definition.get("script"),
        "tools": definition.get("tools", []),
        "called": [{"tool": tool, "schema_digest": digest} for tool, digest in schemas],
        "attempt": run.attempt,
        "forked_from": str(run.parent_id) if run.parent_id and not run.is_child else None,
        "parent": str(run.parent_id) if run.parent_id and run.is_child else None,
        "path": run.path,
    }


# ── Threads and agents ──────────────────────────────────────────────────────────────────────────


def thread(projects: Projects, thread_id: uuid.UUID) -> Thread:
    """One thread; NotFound outside the caller's projects."""
    found = Thread.objects.filter(project__in=projects, id=thread_id).first()
    if found is None:
        raise NotFound("There is no such thread, or you may not see it.")
    return found


def agents(
    projects: Projects, *, cursor: str | None = None, limit: int | None = None
) -> Page[Agent]:
    """The agents that have a definition, by name, with their current version and project."""
    rows = Agent.objects.filter(project__in=projects, current__isnull=False)
    return paged(rows.select_related("current", "project"), ("name", "id"), cursor, limit)


def agents_named(projects: Projects, name: str) -> list[Agent]:
    """The agents of that name, at most one a project."""
    rows = Agent.objects.filter(project__in=projects, name=name, current__isnull=False)
    return list(rows.select_related("current", "project"))


# ── Inbox and dashboard ─────────────────────────────────────────────────────────────────────────


def inbox_summary(projects: Projects) -> InboxSummary:
    """How many interrupts are open in these projects; ids of the first 500, those that expire first at the front."""
    rows = Interrupt.objects.filter(project__in=projects, status=InterruptStatus.OPEN.value)
    ids = list(rows.values_list("id", flat=True)[: INBOX_IDS + 1])
    count = len(ids) if len(ids) <= INBOX_IDS else rows.count()
    return InboxSummary(open=count, ids=ids[:INBOX_IDS])


def dashboard(projects: Projects) -> Dashboard:
    """The numbers of the start page; "today" is the last 24 hours."""
    since = clock.now() - dt.timedelta(hours=24)
    mine = Run.objects.filter(project__in=projects)
    recent = mine.filter(created_at__gt=since).aggregate(
        started=Count("id"),
        failed=Count("id", filter=Q(status__in=[RunStatus.FAILED, RunStatus.TIMED_OUT])),
        cost=Sum("cost_microusd", default=0),
        tokens=Sum(F("input_tokens") + F("output_tokens"), default=0),
    )
    open_ones = Interrupt.objects.filter(
        project__in=projects, status=InterruptStatus.OPEN.value
    ).order_by("expires_at")
    return Dashboard(
        by_status=_live_counts(mine) | _ended_counts(mine, since),
        open_interrupts=open_ones.count(),
        next_expiry=open_ones.values_list("expires_at", flat=True).first(),
        started_today=recent["started"],
        failed_today=recent["failed"],
        cost_microusd_today=recent["cost"],
        tokens_today=recent["tokens"],
    )


def _live_counts(mine: QuerySet[Run]) -> dict[str, int]:
    live = [s.value for s in RunStatus if s not in ENDED]
    return dict.fromkeys(live, 0) | _counts(mine.filter(status__in=live))


def _ended_counts(mine: QuerySet[Run], since: dt.datetime) -> dict[str, int]:
    ended = [s.value for s in RunStatus if s in ENDED]
    return dict.fromkeys(ended, 0) | _counts(mine.filter(status__in=ended, created_at__gt=since))


def _counts(rows: QuerySet[Run]) -> dict[str, int]:
    return dict(rows.order_by().values_list("status").annotate(n=Count("id")))


def _known_status(text: str) -> str:
    if text not in list(RunStatus):
        raise InvalidInput(f"status must be one of {', '.join(RunStatus)}.", field="status")
    return text


# ── Pages by key ────────────────────────────────────────────────────────────────────────────────


def paged(
    rows: QuerySet[M], keys: tuple[str, ...], cursor: str | None, limit: int | None
) -> Page[M]:
    """One page in the order of `keys`, which share one direction and end in a unique one."""
    size = limits().page_size if limit is None else limit
    if not 1 <= size <= limits().page_size_max:
        raise InvalidInput(f"limit must be from 1 to {limits().page_size_max}.", field="limit")
    names = [key.lstrip("-") for key in keys]
    if cursor:
        rows = _behind(rows, names, keys[0].startswith("-"), _decoded(rows, names, cursor))
    found = list(rows.order_by(*keys)[: size + 1])
    more = len(found) > size
    return Page(found[:size], _encoded(found[size - 1], names) if more else None)


def _behind(rows: QuerySet[M], names: list[str], down: bool, values: list[Any]) -> QuerySet[M]:
    side = "lt" if down else "gt"
    beyond = Q()
    for index, name in enumerate(names):
        same = dict(zip(names[:index], values[:index], strict=True))
        beyond |= Q(**same, **{f"{name}__{side}": values[index]})
    # The first key alone as well: it lets the index be entered at the right place.
    return rows.filter(Q(**{f"{names[0]}__{side}e": values[0]}) & beyond)


def _encoded(row: Model, names: list[str]) -> str:
    text = "\n".join(
        value.isoformat() if isinstance(value, dt.datetime) else str(value)
        for value in (getattr(row, name) for name in names)
    )
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decoded(rows: QuerySet[M], names: list[str], cursor: str) -> list[Any]:
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), "-_", validate=True).decode()
        parts = text.split("\n")
        fields = [rows.model._meta.get_field(name) for name in names]
        values = [
            field.to_python(part)  # type: ignore[union-attr]
            for field, part in zip(fields, parts, strict=True)
        ]
    except (ValueError, OverflowError, ValidationError) as error:
        raise InvalidInput(
            "cursor is not one that this list gave; start without it.", field="cursor"
        ) from error
    return values

"""Runs over HTTP: start, look, and ask for changes."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router

from runtime_core import commands, queries
from runtime_core.access import Can
from runtime_core.api.auth import caller
from runtime_core.api.deleting import deleted
from runtime_core.api.idempotency import Answer, once
from runtime_core.api.schemas import (
    CancelRun,
    CheckpointOut,
    CheckpointsOut,
    DeleteIn,
    DeletionOut,
    EffectsOut,
    ForkRun,
    LimitsIn,
    ResumeRun,
    RunOut,
    RunsOut,
    StartRun,
    ToolCallOut,
    ToolCallsOut,
)
from runtime_core.callers import Caller
from runtime_core.errors import InvalidInput, NotFound
from runtime_core.models import Agent, Run
from runtime_core.scheduling import queue
from runtime_core.values import Actor

router = Router(tags=["runs"])


@router.post("", response={201: RunOut}, summary="Start a run")
def start(request: HttpRequest, payload: StartRun) -> HttpResponse:
    """Start a run of an agent; 404 unknown agent, 429 `backpressure` with Retry-After."""
    who = caller(request)
    agent = _agent_for(who, payload)
    if payload.priority > 0:  # to be served before the others is not everybody's to ask
        who.require(agent.project_id, Can.MANAGE)
    thread = queries.thread([agent.project_id], payload.thread_id) if payload.thread_id else None

    def act() -> Answer:
        run = commands.start_run(
            who.actor,
            project=agent.project,
            agent=agent.name,
            input=payload.input,
            thread_id=thread.id if thread else None,
            limits=_given(payload.limits),
            metadata=payload.metadata,
            priority=payload.priority,
        )
        return 201, shown(who, run.id)

    return once(request, act)


@router.get("", response=RunsOut, summary="List runs")
def index(
    request: HttpRequest,
    status: str = "",
    agent: str = "",
    thread_id: str = "",
    cursor: str = "",
    limit: int | None = None,
) -> RunsOut:
    """The newest first."""
    page = queries.runs(
        caller(request).projects(),
        status=status,
        agent=agent,
        thread_id=_uuid(thread_id, "thread_id") if thread_id else None,
        cursor=cursor,
        limit=limit,
    )
    ids = [run.id for run in page.items]
    asked, children = queries.open_interrupts(ids), queries.children(ids)
    places = queue.places(page.items)
    items = [
        RunOut.of(run, asked[run.id], children[run.id], places.get(run.id)) for run in page.items
    ]
    return RunsOut(items=items, next_cursor=page.next_cursor)


@router.get("/{uuid:run_id}", response=RunOut, summary="Look at a run")
def detail(request: HttpRequest, run_id: uuid.UUID) -> RunOut:
    """The run, with the ids of its open interrupts."""
    return _out(_visible(request, run_id))


@router.delete("/{uuid:run_id}", response={202: DeletionOut}, summary="Delete a run")
def delete(
    request: HttpRequest, run_id: uuid.UUID, payload: DeleteIn | None = None
) -> HttpResponse:
    """Hide an ended run and all that derives from it at once; their rows go in the background."""
    return deleted(request, lambda: _visible(request, run_id).project_id, "run", run_id, payload)


@router.post("/{uuid:run_id}/cancel", response={202: RunOut}, summary="Cancel a run")
def cancel(
    request: HttpRequest, run_id: uuid.UUID, payload: CancelRun | None = None
) -> HttpResponse:
    """Wish the run to stop; it is `cancelled` when its work has really ended, or now if it did not within 10 s."""
    forced = payload is not None and payload.force
    return _changed(request, run_id, commands.force_stop if forced else commands.cancel_run)


@router.post("/{uuid:run_id}/pause", response={202: RunOut}, summary="Pause a run")
def pause(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    """Wish the run to stop after the step at hand."""
    return _changed(request, run_id, commands.pause_run)


@router.post("/{uuid:run_id}/resume", response={202: RunOut}, summary="Resume a paused run")
def resume(
    request: HttpRequest, run_id: uuid.UUID, payload: ResumeRun | None = None
) -> HttpResponse:
    """Let a paused run go on, with new limits where the old ones are spent."""
    limits = _given(payload.limits) if payload else None
    return _changed(request, run_id, lambda who, run: commands.resume_run(who, run, limits))


@router.post("/{uuid:run_id}/retry", response={202: RunOut}, summary="Retry a failed run")
def retry(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    """Let a failed or timed-out run go on from its last checkpoint, as a new attempt."""
    return _changed(request, run_id, commands.retry_run)


@router.post("/{uuid:run_id}/fork", response={202: RunOut}, summary="Fork a run")
def fork(request: HttpRequest, run_id: uuid.UUID, payload: ForkRun) -> HttpResponse:
    """Start another run from one of this run's checkpoints; the answer is the new run."""

    def act(who: Actor, run: Run) -> Any:
        return commands.fork_run(who, run, payload.checkpoint_id, payload.changes.given())

    return _changed(request, run_id, act)


@router.post("/{uuid:run_id}/compensate", response={202: RunOut}, summary="Take back effects")
def compensate(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    """Take back what an ended run did, last effect first; the answer is the run that does so."""
    return _changed(request, run_id, commands.compensate_run)


@router.get("/{uuid:run_id}/effects", response=EffectsOut, summary="What a run did")
def effects(request: HttpRequest, run_id: uuid.UUID) -> EffectsOut:
    """Which of its effects stay, which can be taken back, and which have been."""
    return EffectsOut.of(queries.effects(_visible(request, run_id)))


@router.get("/{uuid:run_id}/checkpoints", response=CheckpointsOut, summary="List checkpoints")
def checkpoints(
    request: HttpRequest, run_id: uuid.UUID, cursor: str = "", limit: int | None = None
) -> CheckpointsOut:
    """From where the run may go on, oldest first."""
    page = queries.checkpoints(_visible(request, run_id), cursor=cursor, limit=limit)
    items = [CheckpointOut.of(row) for row in page.items]
    return CheckpointsOut(items=items, next_cursor=page.next_cursor)


@router.put(
    "/{uuid:run_id}/checkpoints/{uuid:checkpoint_id}/pin",
    response=CheckpointOut,
    summary="Pin a checkpoint",
)
def pin(request: HttpRequest, run_id: uuid.UUID, checkpoint_id: uuid.UUID) -> CheckpointOut:
    """Keep this checkpoint from housekeeping."""
    return _pinned(request, run_id, checkpoint_id, True)


@router.delete(
    "/{uuid:run_id}/checkpoints/{uuid:checkpoint_id}/pin",
    response=CheckpointOut,
    summary="Unpin a checkpoint",
)
def unpin(request: HttpRequest, run_id: uuid.UUID, checkpoint_id: uuid.UUID) -> CheckpointOut:
    """Leave this checkpoint to housekeeping."""
    return _pinned(request, run_id, checkpoint_id, False)


@router.get("/{uuid:run_id}/tool-calls", response=ToolCallsOut, summary="List tool calls")
def tool_calls(
    request: HttpRequest, run_id: uuid.UUID, cursor: str = "", limit: int | None = None
) -> ToolCallsOut:
    """The run's ledger, in order; arguments and results are the redacted copies."""
    page = queries.tool_calls(_visible(request, run_id), cursor=cursor, limit=limit)
    items = [ToolCallOut.of(row) for row in page.items]
    return ToolCallsOut(items=items, next_cursor=page.next_cursor)


@router.get("/{uuid:run_id}/provenance", summary="What exactly ran")
def provenance(request: HttpRequest, run_id: uuid.UUID) -> dict[str, Any]:
    """The agent's version and the tools' schemas by digest, and where the run comes from."""
    return queries.provenance(_visible(request, run_id))


def shown(who: Caller, run_id: uuid.UUID) -> dict[str, Any]:
    """The run as plain JSON, read anew."""
    run = queries.run(who.projects(), run_id)
    return _out(run).model_dump(mode="json")


def _out(run: Run) -> RunOut:
    asked, children = queries.open_interrupts([run.id]), queries.children([run.id])
    return RunOut.of(run, asked[run.id], children[run.id], queue.places([run]).get(run.id))


def _changed(
    request: HttpRequest, run_id: uuid.UUID, change: Callable[[Actor, Run], Any]
) -> HttpResponse:
    who = caller(request)
    run = _visible(request, run_id)
    who.require(run.project_id, Can.OPERATE)

    def act() -> Answer:
        changed = change(who.actor, run)
        return 202, shown(who, changed.id if isinstance(changed, Run) else run_id)

    return once(request, act)


def _pinned(
    request: HttpRequest, run_id: uuid.UUID, checkpoint_id: uuid.UUID, pinned: bool
) -> CheckpointOut:
    who, run = caller(request), _visible(request, run_id)
    who.require(run.project_id, Can.OPERATE)
    return CheckpointOut.of(commands.pin_checkpoint(who.actor, run, checkpoint_id, pinned))


def _visible(request: HttpRequest, run_id: uuid.UUID) -> Run:
    return queries.run(caller(request).projects(), run_id)


def _agent_for(who: Caller, payload: StartRun) -> Agent:
    found = queries.agents_named(who.projects(), payload.agent)
    if payload.project:
        found = [agent for agent in found if agent.project.slug == payload.project]
    if not found:
        raise NotFound(
            f"There is no agent {payload.agent!r} in the projects that you can see; "
            "GET /api/v1/agents lists them.",
            agent=payload.agent,
        )
    if len(found) > 1:
        projects = sorted(agent.project.slug for agent in found)
        raise InvalidInput(
            f"Several projects have an agent {payload.agent!r}; say which in `project`.",
            field="project",
            projects=projects,
        )
    who.require(found[0].project_id, Can.OPERATE)
    return found[0]


def _given(limits: LimitsIn | None) -> dict[str, Any] | None:
    return limits.given() or None if limits else None


def _uuid(text: str, field: str) -> uuid.UUID:
    try:
        return uuid.UUID(text)
    except ValueError as error:
        raise InvalidInput(f"{field} must be a UUID.", field=field) from error

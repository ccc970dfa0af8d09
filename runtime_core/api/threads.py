"""Threads over HTTP."""

from __future__ import annotations

import uuid

from django.http import HttpRequest, HttpResponse
from ninja import Router

from runtime_core import access, commands, queries
from runtime_core.access import Can
from runtime_core.api.auth import caller
from runtime_core.api.deleting import deleted
from runtime_core.api.idempotency import Answer, once
from runtime_core.api.schemas import CreateThread, DeleteIn, DeletionOut, ThreadOut
from runtime_core.callers import Caller
from runtime_core.errors import InvalidInput, NotAllowed, NotFound
from runtime_core.models import Project

router = Router(tags=["threads"])


@router.post("", response={201: ThreadOut}, summary="Create a thread")
def create(request: HttpRequest, payload: CreateThread) -> HttpResponse:
    """Create a conversation that runs can belong to."""
    who = caller(request)
    project = _project_for(who, payload.project)
    who.require(project.id, Can.OPERATE)

    def act() -> Answer:
        thread = commands.create_thread(who.actor, project, payload.metadata or {})
        return 201, ThreadOut.of(thread).model_dump(mode="json")

    return once(request, act)


@router.get("/{uuid:thread_id}", response=ThreadOut, summary="Look at a thread")
def detail(request: HttpRequest, thread_id: uuid.UUID) -> ThreadOut:
    """The thread; its runs are at `/runs?thread_id=`."""
    return ThreadOut.of(queries.thread(caller(request).projects(), thread_id))


@router.delete("/{uuid:thread_id}", response={202: DeletionOut}, summary="Delete a thread")
def delete(
    request: HttpRequest, thread_id: uuid.UUID, payload: DeleteIn | None = None
) -> HttpResponse:
    """Hide a thread with its runs and all that derives from them at once; the rows go in the background."""

    def project_of() -> uuid.UUID:
        return queries.thread(caller(request).projects(), thread_id).project_id

    return deleted(request, project_of, "thread", thread_id, payload)


def _project_for(who: Caller, slug: str | None) -> Project:
    visible = list(who.projects().filter(slug=slug) if slug else who.projects())
    if not visible:
        raise NotFound("There is no such project, or you may not see it.")
    if len(visible) == 1:
        return visible[0]
    mine = [project for project in visible if Can.OPERATE in access.allowed(who.user, project.id)]
    if not mine:
        raise NotAllowed(f"Your role in these projects does not let you {Can.OPERATE.value}.")
    if len(mine) > 1:
        slugs = sorted(project.slug for project in mine)
        raise InvalidInput("Say in which `project`.", field="project", projects=slugs)
    return mine[0]

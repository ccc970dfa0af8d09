"""Sharing the work over HTTP for programs: claims, assignments, snooze, delegations, grants, views."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any, Literal

from django.contrib.auth import get_user_model
from django.http import HttpRequest, HttpResponse
from ninja import Router, Schema
from pydantic import AwareDatetime, ConfigDict, Field, StrictBool, StrictInt, StrictStr

from approvals import grants
from approvals.models import Delegation, Grant, SavedView
from approvals.people import delegation
from approvals.teamwork import claims, saved_views
from runtime_core.access import require_person
from runtime_core.api.auth import caller as caller_of
from runtime_core.api.idempotency import once
from runtime_core.errors import InvalidInput, NotFound
from runtime_core.models import Project

router = Router(tags=["sharing"])
LIST_MAX = 200
Name = StrictStr


class Strict(Schema):
    """Whatever is not in this form is refused, never guessed."""

    model_config = ConfigDict(extra="forbid", strict=True)


class AssignIn(Strict):
    """Whom a request is given to: exactly these."""

    people: list[Name] = Field(default_factory=list, max_length=claims.ASSIGNED_MAX)
    groups: list[Name] = Field(default_factory=list, max_length=claims.ASSIGNED_MAX)


class SnoozeIn(Strict):
    """For how long a request is out of sight; 0 brings it back."""

    minutes: StrictInt = Field(ge=0, le=claims.SNOOZE_MINUTES_MAX)


class DelegationIn(Schema):
    """Somebody to stand in for you, or as an admin for another."""

    model_config = ConfigDict(extra="forbid")

    project: StrictStr
    delegate: StrictStr
    delegator: StrictStr | None = None
    ends_at: AwareDatetime
    starts_at: AwareDatetime | None = None
    tool: StrictStr = ""
    max_risk: Literal["low", "medium", "high", "critical"] = "critical"


class ViewIn(Strict):
    """A view of the inbox under a name; for a project's people with `project`."""

    name: StrictStr = Field(max_length=saved_views.NAME_MAX)
    query: StrictStr = Field(max_length=saved_views.QUERY_MAX)
    project: StrictStr | None = None
    is_default: StrictBool = False


@router.post("/interrupts/{uuid:interrupt_id}/claim")
def claim(request: HttpRequest, interrupt_id: uuid.UUID) -> Any:
    """Say that you look after it for a while; 409 `already_claimed` if somebody else does."""
    caller = caller_of(request)
    made = claims.claim(caller.actor, interrupt_id, token_project=caller.token_project)
    return {"holder": made.holder.get_username(), "until": made.until.isoformat()}


@router.post("/interrupts/{uuid:interrupt_id}/release")
def release(request: HttpRequest, interrupt_id: uuid.UUID) -> Any:
    """End your claim."""
    caller = caller_of(request)
    claims.release(caller.actor, interrupt_id, token_project=caller.token_project)
    return {"holder": None}


@router.post("/interrupts/{uuid:interrupt_id}/assignments")
def assign(request: HttpRequest, interrupt_id: uuid.UUID, body: AssignIn) -> Any:
    """Give it to exactly these people and groups; others may still decide."""
    caller = caller_of(request)
    rows = claims.assign(
        caller.actor, interrupt_id, body.people, body.groups, token_project=caller.token_project
    )
    return {
        "people": [one.person.get_username() for one in rows if one.person],
        "groups": [one.group.name for one in rows if one.group],
    }


@router.post("/interrupts/{uuid:interrupt_id}/snooze")
def snooze(request: HttpRequest, interrupt_id: uuid.UUID, body: SnoozeIn) -> Any:
    """Put it out of your own sight."""
    caller = caller_of(request)
    made = claims.snooze(
        caller.actor, interrupt_id, body.minutes, token_project=caller.token_project
    )
    return {"until": made.until.isoformat() if made else None}


@router.get("/delegations")
def list_delegations(request: HttpRequest) -> Any:
    """Who stands in for whom in your projects."""
    caller = caller_of(request)
    found = delegation.visible(caller.user, caller.token_project)[:LIST_MAX]
    return {"items": [_delegation(one) for one in found]}


@router.post("/delegations")
def delegate(request: HttpRequest, body: DelegationIn) -> HttpResponse:
    """Have somebody stand in for you; as a project admin, for another."""
    caller = caller_of(request)
    project = _project(caller, body.project)
    by = _person(project, body.delegator, "delegator") if body.delegator else caller.user
    to = _person(project, body.delegate, "delegate")
    wish = delegation.Wish(body.ends_at, body.starts_at, body.tool, body.max_risk)

    def make() -> tuple[int, dict[str, Any]]:
        made = delegation.delegate(caller.actor, caller.user, project, by, to, wish)
        return 201, _delegation(made)

    return once(request, make)


@router.post("/delegations/{uuid:delegation_id}/revoke")
def end_delegation(request: HttpRequest, delegation_id: uuid.UUID) -> Any:
    """End it now."""
    caller = caller_of(request)
    _require_project(caller, Delegation, delegation_id)
    return _delegation(delegation.revoke(caller.actor, caller.user, delegation_id))


@router.get("/grants")
def list_grants(request: HttpRequest) -> Any:
    """The remembered approvals of your projects, newest first."""
    caller = caller_of(request)
    found = grants.visible(caller.user, caller.token_project)[:LIST_MAX]
    return {"items": [_grant(one) for one in found]}


@router.post("/grants/{uuid:grant_id}/revoke")
def end_grant(request: HttpRequest, grant_id: uuid.UUID) -> Any:
    """End a remembered approval; the next call is asked about again."""
    caller = caller_of(request)
    _require_project(caller, Grant, grant_id)
    return _grant(grants.revoke(caller.actor, caller.user, grant_id))


@router.get("/inbox/views")
def list_views(request: HttpRequest) -> Any:
    """Your saved views and those of your projects."""
    caller = caller_of(request)
    found = saved_views.visible(caller.user, caller.token_project)[:LIST_MAX]
    return {"items": [_view(one) for one in found]}


@router.post("/inbox/views")
def save_view(request: HttpRequest, body: ViewIn) -> HttpResponse:
    """Save a view; the same name again replaces it."""
    caller = caller_of(request)
    require_person(caller.actor, "save a view")
    project = _project(caller, body.project) if body.project else None

    def make() -> tuple[int, dict[str, Any]]:
        made = saved_views.save(
            caller.user, body.name, body.query, project=project, is_default=body.is_default
        )
        return 201, _view(made)

    return once(request, make)


def _project(caller: Any, slug: str) -> Project:
    found: Project | None = caller.projects().filter(slug=slug).first()
    if found is None:
        raise NotFound("There is no such project, or you may not see it.")
    return found


def _person(project: Project, name: str, field: str) -> Any:
    members = get_user_model().objects.filter(memberships__project=project, is_active=True)
    found = members.filter(username=name).distinct().first()
    if found is None:
        raise InvalidInput(f"{field}: there is no member {name} in the project.", field=field)
    return found


def _require_project(caller: Any, model: Any, row_id: uuid.UUID) -> None:
    """A token that is narrowed to a project reaches nothing of another."""
    if not model.objects.filter(id=row_id, project__in=caller.projects()).exists():
        raise NotFound()


def _delegation(one: Delegation) -> dict[str, Any]:
    return {
        "id": str(one.id),
        "project": one.project.slug,
        "delegator": one.delegator.get_username(),
        "delegate": one.delegate.get_username(),
        "tool": one.tool,
        "max_risk": one.max_risk,
        "starts_at": one.starts_at.isoformat(),
        "ends_at": one.ends_at.isoformat(),
        "revoked_at": _time(one.revoked_at),
    }


def _grant(one: Grant) -> dict[str, Any]:
    return {
        "id": str(one.id),
        "interrupt_id": str(one.interrupt_id),
        "grantor": one.grantor.get_username(),
        "scope": one.scope,
        "tool": one.tool,
        "same_arguments": bool(one.args_digest),
        "uses": one.uses,
        "max_uses": one.max_uses,
        "expires_at": one.expires_at.isoformat(),
        "revoked_at": _time(one.revoked_at),
    }


def _view(one: SavedView) -> dict[str, Any]:
    return {
        "id": str(one.id),
        "name": one.name,
        "query": one.query,
        "project": one.project.slug if one.project else None,
        "is_default": one.is_default,
    }


def _time(moment: dt.datetime | None) -> str | None:
    return moment.isoformat() if moment else None

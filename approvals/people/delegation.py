"""Standing in for somebody: made by the one who is away or by a project's admin, ended by any of the
two sides, and never wider than the delegator's own right at the moment it is used.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from approvals.models import Delegation
from runtime_core import clock, ports
from runtime_core.access import Can, allowed, require_person, visible_projects
from runtime_core.errors import InvalidInput, NotAllowed, NotFound
from runtime_core.models import Interrupt, Project
from runtime_core.transactions import one_commit
from runtime_core.values import Actor, Audit, Risk

DAYS_MAX = 90
_RELATED = ("project", "delegator", "delegate")


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be delegated, and until when; `starts_at` None is now."""

    ends_at: dt.datetime
    starts_at: dt.datetime | None = None
    tool: str = ""
    max_risk: str = Risk.CRITICAL.value


def delegate(actor: Actor, user: Any, project: Project, by: Any, to: Any, wish: Wish) -> Delegation:
    """Let `to` stand in for `by`. `user`, who asks for it, is `by` or manages the project.

    InvalidInput names the field that does not fit.
    """
    # Else a token that may not decide would hand the seat to an account that may.
    require_person(actor, "have anybody stand in")
    if user.pk != by.pk and Can.MANAGE not in allowed(user, project.id):
        raise NotAllowed("Only you yourself or a project admin can have somebody stand in for you.")
    return make(actor, user, project, by, to, wish)


def make(actor: Actor, user: Any, project: Project, by: Any, to: Any, wish: Wish) -> Delegation:
    """The same, for a caller that has asked whether `user` may."""
    check(project, by, to, wish)
    with one_commit("delegate"):
        made = Delegation.objects.create(
            project=project,
            delegator=by,
            delegate=to,
            tool=wish.tool,
            max_risk=wish.max_risk,
            starts_at=wish.starts_at or Now(),
            ends_at=wish.ends_at,
            created_by=user,
        )
        made.refresh_from_db()
        _record("delegation.created", actor, made)
    return made


def check(project: Project, by: Any, to: Any, wish: Wish) -> None:
    """Pass if such a delegation can be made; else InvalidInput, which names the field."""
    if by.pk == to.pk:
        raise InvalidInput("delegate: nobody stands in for themselves.", field="delegate")
    # To see everything as a superuser is not to be one of its people.
    if not to.memberships.filter(project=project).exists() or not to.is_active:
        raise InvalidInput("delegate: must be a member of the project.", field="delegate")
    if Can.VIEW not in allowed(by, project.id):
        raise InvalidInput("delegator: must be a member of the project.", field="delegator")
    now = clock.now()
    if wish.ends_at <= max(now, wish.starts_at or now):
        raise InvalidInput("ends_at: must be later than now and than its start.", field="ends_at")
    if wish.ends_at > now + dt.timedelta(days=DAYS_MAX):
        raise InvalidInput(f"ends_at: at most {DAYS_MAX} days from now.", field="ends_at")
    if wish.max_risk not in list(Risk):
        raise InvalidInput(f"max_risk: must be one of {', '.join(Risk)}.", field="max_risk")
    if len(wish.tool) > 100:
        raise InvalidInput("tool: at most 100 characters.", field="tool")


def revoke(actor: Actor, user: Any, delegation_id: uuid.UUID) -> Delegation:
    """End it now: both sides may, and who manages the project. Again does no harm."""
    require_person(actor, "end a delegation")
    found = visible(user).filter(id=delegation_id).first()
    if found is None:
        raise NotFound("There is no such delegation, or you may not see it.")
    if not may_revoke(user, found):
        raise NotAllowed("Only the two people concerned or a project admin end a delegation.")
    end(actor, found)
    return found


def end(actor: Actor, delegation: Delegation) -> None:
    """The same, for a caller that has asked whether `actor` may."""
    with one_commit("revoke delegation"):
        if Delegation.objects.filter(id=delegation.id, revoked_at=None).update(revoked_at=Now()):
            _record("delegation.revoked", actor, delegation)
    delegation.refresh_from_db()


def may_revoke(user: Any, delegation: Delegation) -> bool:
    """True for those who may end it."""
    is_concerned = user.pk in (delegation.delegator_id, delegation.delegate_id)
    return is_concerned or Can.MANAGE in allowed(user, delegation.project_id)


def visible(user: Any, token_project: uuid.UUID | None = None) -> QuerySet[Delegation]:
    """The delegations of the projects that `user` may see, newest first."""
    projects = visible_projects(user, token_project).values("id")
    return Delegation.objects.filter(project__in=projects).select_related(*_RELATED)


def in_force() -> Q:
    """The condition that a delegation holds now, by the database's clock."""
    return Q(revoked_at=None, starts_at__lte=Now(), ends_at__gt=Now(), delegator__is_active=True)


def delegators(interrupt: Interrupt, user_id: int) -> list[int]:
    """For whom this person stands in on `interrupt`, as far as the delegations say."""
    found = Delegation.objects.filter(
        in_force(),
        Q(tool="") | Q(tool=interrupt.tool_call.tool),
        project=interrupt.project_id,
        delegate=user_id,
        max_risk__in=at_least(interrupt.risk),
    )
    return list(dict.fromkeys(found.order_by("created_at").values_list("delegator_id", flat=True)))


def delegates(interrupt: Interrupt) -> QuerySet[Any, Any]:
    """The ids of those who stand in for anybody on `interrupt`."""
    found = Delegation.objects.filter(
        in_force(),
        Q(tool="") | Q(tool=interrupt.tool_call.tool),
        project=interrupt.project_id,
        max_risk__in=at_least(interrupt.risk),
    )
    return found.values("delegate_id")


def at_least(risk: str) -> list[str]:
    """This risk and those above it."""
    return [one.value for one in Risk if one.level >= Risk(risk).level]


def up_to(risk: str) -> Iterable[str]:
    """This risk and those below it."""
    return [one.value for one in Risk if one.level <= Risk(risk).level]


def _record(action: str, actor: Actor, row: Delegation) -> None:
    data = {
        "delegator": row.delegator_id,
        "delegate": row.delegate_id,
        "tool": row.tool,
        "max_risk": row.max_risk,
        "starts_at": row.starts_at.isoformat(),
        "ends_at": row.ends_at.isoformat(),
    }
    entry = Audit(action, actor, "delegation", str(row.id), project_id=row.project_id, data=data)
    ports.audit().record([entry])

"""Who may see and do what: one place that every view, socket, API call and command asks.

A person without any role in a project cannot tell that it exists: NotFound, never NotAllowed.
"""

from __future__ import annotations

import enum
import uuid
from collections.abc import Iterable
from typing import Any

from django.db.models import QuerySet

from runtime_core import prepared
from runtime_core.errors import NotAllowed, NotFound
from runtime_core.models import Project, Role
from runtime_core.values import Actor


class Can(enum.Enum):
    """What a role allows."""

    VIEW = "view"
    OPERATE = "start, cancel and resume runs"
    DECIDE = "decide in the inbox"
    MANAGE = "manage the project"
    SEE_PERSONAL = "see personal data"


ROLE_ALLOWS: dict[str, frozenset[Can]] = {
    Role.VIEWER: frozenset({Can.VIEW}),
    Role.AUDITOR: frozenset({Can.VIEW, Can.SEE_PERSONAL}),
    Role.OPERATOR: frozenset({Can.VIEW, Can.OPERATE}),
    Role.APPROVER: frozenset({Can.VIEW, Can.DECIDE}),
    Role.ADMIN: frozenset(Can),
}


def visible_projects(user: Any, token_project: uuid.UUID | None = None) -> QuerySet[Project]:
    """The projects that `user` has a role in (all, for an active superuser), narrowed to the token's project."""
    if not user.is_authenticated or not user.is_active:
        return Project.objects.none()
    projects = Project.objects.all()
    if not user.is_superuser:
        projects = projects.filter(memberships__user=user).distinct()
    return projects.filter(id=token_project) if token_project else projects


_ROLES = "SELECT role FROM membership WHERE user_id = %(user)s AND project_id = %(project)s"


def allowed(user: Any, project_id: uuid.UUID) -> frozenset[Can]:
    """What `user` may do in the project right now, read from the rows (a superuser may view and manage, not decide)."""
    if not user.is_authenticated or not user.is_active:
        return frozenset()
    roles = prepared.rows(_ROLES, {"user": user.pk, "project": project_id})
    return rights_of(user, [role for (role,) in roles])


def rights_of(user: Any, roles: Iterable[str]) -> frozenset[Can]:
    """The same for an active user whose roles in the project are at hand."""
    rights = frozenset[Can]().union(*(ROLE_ALLOWS[Role(role)] for role in roles))
    if user.is_superuser:
        rights |= {Can.VIEW, Can.OPERATE, Can.MANAGE, Can.SEE_PERSONAL}
    return rights


def require(user: Any, project_id: uuid.UUID, right: Can) -> None:
    """Pass if `user` has the right; NotFound if they may not even see the project, NotAllowed otherwise."""
    rights = allowed(user, project_id)
    if Can.VIEW not in rights:
        raise NotFound()
    if right not in rights:
        raise NotAllowed(
            f"Your role in this project does not let you {right.value}. Ask a project admin.",
            right=right.name.lower(),
        )


def require_person(actor: Actor, what: str) -> None:
    """Pass if it is a person who asks: a service token decides where it may, and arranges nothing else."""
    if actor.is_machine:
        raise NotAllowed(f"A service token may not {what}; do it as the person themselves.")

"""Filtered inboxes under a name: a person's own, and those of a project for all its people."""

from __future__ import annotations

import uuid
from typing import Any
from urllib.parse import parse_qsl, urlencode

from django.db.models import Q, QuerySet

from approvals.models import SavedView
from runtime_core.access import Can, require, visible_projects
from runtime_core.errors import InvalidInput, NotAllowed, NotFound
from runtime_core.models import Project
from runtime_core.sanitize import storable_text
from runtime_core.transactions import one_commit

VIEWS_MAX = 50
NAME_MAX, QUERY_MAX = 60, 300
_KEPT = ("view", "risk", "agent", "tool", "sort")


def visible(user: Any, token_project: uuid.UUID | None = None) -> QuerySet[SavedView]:
    """The person's own views and those of their projects, by name."""
    projects = visible_projects(user, token_project).values("id")
    own = Q(owner_id=user.pk, project=None)
    return SavedView.objects.filter(own | Q(project__in=projects)).select_related(
        "project", "owner"
    )


def save(
    user: Any, name: str, query: str, *, project: Project | None = None, is_default: bool = False
) -> SavedView:
    """Keep a query string under a name; the same name again replaces it. For a project's people
    only who decides or manages there.
    """
    name, query = storable_text(name).strip(), _clean(query)
    if not 0 < len(name) <= NAME_MAX:
        raise InvalidInput(f"name: must have 1 to {NAME_MAX} characters.", field="name")
    if project is not None:
        require(user, project.id, Can.DECIDE)
        if is_default:
            raise InvalidInput("is_default: only a view of your own can be.", field="is_default")
    with one_commit("save view"):
        if is_default:
            SavedView.objects.filter(owner=user, is_default=True).update(is_default=False)
        same = {"name": name, "project": project} | ({} if project else {"owner": user})
        if SavedView.objects.filter(owner=user).exclude(**same).count() >= VIEWS_MAX:
            raise InvalidInput(f"name: at most {VIEWS_MAX} views; delete one first.", field="name")
        made, _ = SavedView.objects.update_or_create(
            **same, defaults={"query": query, "is_default": is_default, "owner": user}
        )
    return made


def delete(user: Any, view_id: uuid.UUID) -> None:
    """Remove a view: its owner may, and who manages the project."""
    found = visible(user).filter(id=view_id).first()
    if found is None:
        raise NotFound("There is no such view, or you may not see it.")
    if found.owner_id != user.pk:
        if found.project_id is None:
            raise NotAllowed("It is somebody else's.")
        require(user, found.project_id, Can.MANAGE)
    found.delete()


def default_query(user: Any) -> str:
    """The query string with which the person's inbox opens; nothing if they chose none."""
    found = SavedView.objects.filter(owner_id=user.pk, is_default=True)
    return found.values_list("query", flat=True).first() or ""


def _clean(query: str) -> str:
    """Only what the inbox reads, so that a view never becomes an address of something else."""
    pairs = [(key, value) for key, value in parse_qsl(query.lstrip("?")) if key in _KEPT]
    clean = urlencode({key: storable_text(value)[:100] for key, value in pairs})
    if len(clean) > QUERY_MAX:
        raise InvalidInput(f"query: at most {QUERY_MAX} characters.", field="query")
    return clean

"""Who may decide on a request, as people: for those who must be told, asked or named."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import QuerySet

from approvals.rulings import ruling_on
from runtime_core.models import Interrupt

PEOPLE_MAX = 200


def members(project_id: Any) -> QuerySet[Any]:
    """The active people with a role in the project."""
    people = get_user_model().objects.filter(is_active=True, memberships__project_id=project_id)
    return people.distinct().order_by("username")


def who_may_decide(interrupt: Interrupt) -> list[Any]:
    """Those of them who may decide on `interrupt` right now; asked one by one, so not for lists."""
    found = members(interrupt.project_id)[:PEOPLE_MAX]
    return [person for person in found if ruling_on(interrupt, person.pk).may]

"""Reads of a person's notifications."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from approvals.notify.fanout import RELATED
from approvals.notify.models import Channel, Delivery
from runtime_core.access import visible_projects

LIST_MAX = 100
COUNT_MAX = 100


def of(user: Any) -> QuerySet[Delivery]:
    """What `user` was told in the app, about projects that they may still see."""
    return Delivery.objects.filter(
        person_id=user.pk,
        channel=Channel.IN_APP,
        notice__interrupt__project__in=visible_projects(user).values("id"),
    )


def newest(user: Any) -> list[Delivery]:
    """The newest of them, with all that the page shows."""
    related = [f"notice__{name}" for name in RELATED]
    return list(of(user).select_related(*related).order_by("-created_at", "-id")[:LIST_MAX])


def unread_count(user: Any) -> int:
    """How many of them are unread, counted no further than COUNT_MAX."""
    return of(user).filter(read_at__isnull=True).order_by()[:COUNT_MAX].count()

"""What every page's frame shows of the inbox."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from approvals.inbox.desk import desk_of
from approvals.notify.queries import unread_count
from approvals.teamwork import saved_views

VIEWS_SHOWN = 12


def inbox(request: HttpRequest) -> dict[str, Any]:
    """`inbox_count`, `unread_count` and `saved_inbox_views` for signed-in people; looked up only if the
    template asks.
    """
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {}
    return {
        "inbox_count": SimpleLazyObject(lambda: desk_of(request).open_count),
        "unread_count": SimpleLazyObject(lambda: unread_count(user)),
        "saved_inbox_views": SimpleLazyObject(
            lambda: list(saved_views.visible(user)[:VIEWS_SHOWN])
        ),
    }

"""What every page's frame shows of the inbox."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from approvals.notify.queries import unread_count
from approvals.queries import open_count


def inbox(request: HttpRequest) -> dict[str, Any]:
    """`inbox_count` and `unread_count` for signed-in people; counted only if the template asks."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {}
    return {
        "inbox_count": SimpleLazyObject(lambda: open_count(user)),
        "unread_count": SimpleLazyObject(lambda: unread_count(user)),
    }

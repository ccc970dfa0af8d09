"""What every page's frame needs to know of this side."""

from __future__ import annotations

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from runtime_core.access import Can
from traces import queries
from traces.pages import caller


def system(request: HttpRequest) -> dict[str, object]:
    """Whether the system page is for this person."""
    if not getattr(request, "user", None) or not request.user.is_authenticated:
        return {}
    return {
        "may_see_system": SimpleLazyObject(
            lambda: queries.projects_where(caller(request), Can.OPERATE).exists()
        )
    }

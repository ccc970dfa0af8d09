"""What every page's frame needs to know of this side."""

from __future__ import annotations

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from runtime_core.access import Can
from traces import queries
from traces.pages import caller


def system(request: HttpRequest) -> dict[str, object]:
    """Whether this person starts runs somewhere, for whom the system page is too, and may see the policies."""
    if not getattr(request, "user", None) or not request.user.is_authenticated:
        return {}
    operates = SimpleLazyObject(
        lambda: queries.projects_where(caller(request), Can.OPERATE).exists()
    )
    audits = SimpleLazyObject(
        lambda: queries.projects_where(caller(request), Can.SEE_PERSONAL).exists()
    )
    return {"may_see_system": operates, "may_start_runs": operates, "may_see_policies": audits}

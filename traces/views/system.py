"""The system page: workers, queues, quotas and what is stuck, of the projects in which one may start runs."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from runtime_core.access import Can
from runtime_core.errors import NotAllowed
from runtime_core.scheduling.overview import overview
from traces import queries
from traces.pages import caller, page

TONES = {"alive": "ok", "late": "late", "gone": "bad", "stopped": "neutral"}
START = "celery -A config worker"


@page
@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """What goes on now; the page reads itself anew while somebody looks at it."""
    projects = list(
        queries.projects_where(caller(request), Can.OPERATE).values_list("id", flat=True)
    )
    if not projects:
        raise NotAllowed(
            "This page is for operators and admins. Ask an admin of a project to make you one.",
            right="operate",
        )
    seen = overview(projects)
    context = {
        "seen": seen,
        "workers": [(line, TONES[line.state]) for line in seen.workers],
        "start_command": START,
        "may_change": request.user.is_superuser,
    }
    return render(request, "traces/system.html", context)

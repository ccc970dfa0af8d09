"""The dashboard: what needs me, what runs, what went wrong."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from runtime_core import queries as core_queries
from runtime_core.access import Can
from traces import queries
from traces.pages import caller, page

ROWS = 6


@page
@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """The start page."""
    who = caller(request)
    numbers = core_queries.dashboard(who.projects())
    status = numbers.by_status
    context = {
        "numbers": numbers,
        "running": status["running"] + status["waiting"],
        "queued": status["pending"],
        "stopped": status["interrupted"] + status["paused"],
        "cost_today": numbers.cost_microusd_today / 1e6,
        "needs": queries.needs(who, ROWS),
        "live_runs": queries.live_runs(who, ROWS),
        "failed_runs": queries.failed_runs(who, ROWS),
        "recent_runs": queries.recent_runs(who, ROWS),
        "may_start": queries.projects_where(who, Can.OPERATE).exists(),
        "has_project": who.projects().exists(),
    }
    return render(request, "traces/home.html", context)

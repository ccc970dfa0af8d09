"""The page that shows personal data of a run, for a reason that the audit keeps."""

from __future__ import annotations

import uuid

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from runtime_core import queries
from runtime_core.access import Can
from runtime_core.errors import InvalidInput
from traces.pages import caller, page
from traces.personal import REASON_CHARACTERS, reveal


@page
@require_http_methods(["GET", "HEAD", "POST"])
def show(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    """Ask for the reason first; the answer to it shows the conversation and is kept nowhere."""
    who = caller(request)
    run = queries.run(who.projects(), run_id)
    who.require(run.project_id, Can.SEE_PERSONAL)
    context = {"run": run, "reason_characters": REASON_CHARACTERS}
    if request.method != "POST":
        return render(request, "traces/run/personal.html", context)
    try:
        context["lines"] = reveal(who, run, request.POST.get("reason", ""))
    except InvalidInput as error:
        context["problem"] = error.message
        return render(request, "traces/run/personal.html", context, status=error.http_status)
    return render(request, "traces/run/personal.html", context)

"""The list of runs, and the form that starts one."""

from __future__ import annotations

import uuid
from typing import Any
from urllib.parse import urlencode

from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from runtime_core import commands
from runtime_core import queries as core_queries
from runtime_core.access import Can
from runtime_core.errors import Backpressure, InterlockError, InvalidInput, NotAllowed
from runtime_core.models import IdempotencyKey, Run
from runtime_core.sanitize import storable_text
from runtime_core.scheduling import queue
from runtime_core.states import RunStatus
from runtime_core.templatetags.status_words import RUN
from traces import queries
from traces.pages import caller, page
from traces.views.run_form import RunForm, error_field

KEY_PREFIX = "page:start-run:"


@page
@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """The newest runs; filters and cursor are in the address."""
    who = caller(request)
    chosen = filters_of(request)
    cursor = request.GET.get("cursor") or None
    found = core_queries.runs(
        who.projects(), status=chosen["status"], agent=chosen["agent"], cursor=cursor
    )
    places = queue.places(found.items)
    for run in found.items:
        run.place = places.get(run.id)  # type: ignore[attr-defined]
    context = list_context(request, chosen, found.next_cursor) | {
        "runs": found.items,
        "may_start": queries.projects_where(who, Can.OPERATE).exists(),
    }
    return render(request, "traces/runs.html", context)


def filters_of(request: HttpRequest) -> dict[str, str | None]:
    """The filters in the address; what is not known there is left out."""
    status = request.GET.get("status", "")
    agent = storable_text(request.GET.get("agent", ""))[:60]
    return {"status": status if status in list(RunStatus) else None, "agent": agent or None}


def list_context(
    request: HttpRequest, chosen: dict[str, str | None], next_cursor: str | None
) -> dict[str, Any]:
    """What a list of runs needs besides its rows."""
    kept = {key: value for key, value in chosen.items() if value}
    return {
        "filters": chosen,
        "is_narrowed": bool(kept),
        "statuses": [(status.value, RUN[status.value].words) for status in RunStatus],
        "agents": queries.agent_names(caller(request)),
        "next_url": f"?{urlencode({**kept, 'cursor': next_cursor})}" if next_cursor else "",
        "first_url": f"?{urlencode(kept)}" if request.GET.get("cursor") else "",
    }


@page
@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """The form, and the start of a run. The same form sent twice starts one run."""
    who = caller(request)
    agents = queries.startable_agents(who)
    if not agents.exists():
        _refuse_without_role(request)
        return render(request, "traces/run_new.html", {"form": None})
    form = RunForm(request.POST or None, agents=agents, initial={"agent": request.GET.get("agent")})
    if request.method == "POST" and form.is_valid():
        return _start_once(request, form)
    return _form_page(request, form)


def _refuse_without_role(request: HttpRequest) -> None:
    who = caller(request)
    if queries.projects_where(who, Can.OPERATE).exists():
        return  # there is nothing to start yet, which the page says
    for project in who.projects()[:1]:
        who.require(project.id, Can.OPERATE)
    raise NotAllowed("You are in no project yet. Ask an admin to add you to one as an operator.")


def _form_page(request: HttpRequest, form: RunForm, status: int = 200) -> HttpResponse:
    if form.errors and status == 200:
        status = 422
    return render(request, "traces/run_new.html", {"form": form}, status=status)


def _start_once(request: HttpRequest, form: RunForm) -> HttpResponse:
    user_id = caller(request).user.pk
    key = f"{KEY_PREFIX}{form.cleaned_data['key']}"
    try:
        with transaction.atomic():
            row = IdempotencyKey.objects.create(user_id=user_id, key=key, request_digest="page")
    except IntegrityError:
        return _started_before(request, key)
    try:
        run = _start(request, form)
    except InterlockError as error:
        row.delete()
        form.add_error(error_field(form, error), error.message)
        return _not_started(request, form, error)
    except BaseException:
        row.delete()
        raise
    IdempotencyKey.objects.filter(pk=row.pk).update(status=201, response={"run": str(run.id)})
    return redirect("run", run.id)


def _not_started(request: HttpRequest, form: RunForm, error: InterlockError) -> HttpResponse:
    """The form with what was wrong; a full queue also says when to come back."""
    if not isinstance(error, Backpressure):
        return _form_page(request, form, 422)
    answer = _form_page(request, form, 429)
    answer["Retry-After"] = str(error.data["retry_after"])
    return answer


def _start(request: HttpRequest, form: RunForm) -> Run:
    agent = form.cleaned_data["agent"]
    who = caller(request)
    who.require(agent.project_id, Can.OPERATE)
    return commands.start_run(
        who.actor,
        project=agent.project,
        agent=agent.name,
        input=form.cleaned_data["input"],
        limits=form.limits() or None,
    )


def _started_before(request: HttpRequest, key: str) -> HttpResponse:
    row = IdempotencyKey.objects.filter(user_id=caller(request).user.pk, key=key).first()
    if row is None or not row.response:
        return redirect("runs")
    try:
        return redirect("run", uuid.UUID(row.response["run"]))
    except (KeyError, ValueError) as error:
        raise InvalidInput("This form was sent before; open a new one.") from error

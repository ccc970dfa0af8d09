"""One run: what it does now, and the forms that steer it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from runtime_core import access, commands, queries
from runtime_core.access import Can
from runtime_core.errors import InterlockError, InvalidInput
from runtime_core.models import Event, Run
from runtime_core.values import Actor
from traces.deletion import requests
from traces.gate import redactor
from traces.pages import caller, page
from traces.shown import run_regions
from traces.shown.event_rows import rows_of
from traces.views.limits_form import TopUpForm

EVENTS_SHOWN = 300


@page
@require_safe
def show(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    """The run page; `?before=SEQ` shows what came earlier."""
    run = queries.run(caller(request).projects(), run_id)
    return render(request, "traces/run/page.html", _context(request, run))


@page
@require_http_methods(["GET", "HEAD", "POST"])
def cancel(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    """Ask first (the dialog's page without JavaScript), then cancel."""
    return _steer(request, run_id, "cancel", commands.cancel_run, "Cancel was requested.")


@page
@require_http_methods(["GET", "HEAD", "POST"])
def force(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    """End a run that was asked to stop and does not."""
    return _steer(request, run_id, "force", commands.force_stop, "The run was stopped by force.")


@page
@require_http_methods(["GET", "HEAD", "POST"])
def pause(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    """Pause the run at the end of its step."""
    return _steer(request, run_id, "pause", commands.pause_run, "It pauses after this step.")


@page
@require_http_methods(["GET", "HEAD", "POST"])
def retry(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    """Go on from the last checkpoint of a run that failed."""
    return _steer(request, run_id, "retry", commands.retry_run, "The run is queued again.")


@page
@require_http_methods(["GET", "HEAD", "POST"])
def compensate(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    """Take back what the run did, by a run of its own."""
    said = "A run that takes its effects back is queued; it is linked below."
    return _steer(request, run_id, "compensate", commands.compensate_run, said)


@page
@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    """Delete an ended run and all that came of it; its address is nobody's then."""
    run = queries.run(caller(request).projects(), run_id)
    caller(request).require(run.project_id, Can.MANAGE)
    if request.method != "POST":
        return render(request, "traces/run/ask.html", _context(request, run) | {"ask": "delete"})
    try:
        asked = requests.delete_run(caller(request).actor, run.id)
    except InterlockError as error:
        messages.error(request, f"Nothing was done: {error.message}")
        return redirect("run", run.id)
    messages.success(request, f"Deleted, with all that came of it: {asked.run_count} in all.")
    return redirect("runs")


@page
@require_http_methods(["GET", "HEAD", "POST"])
def fork(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    """Go on in a new run from the newest checkpoint that verifies, where the run's own state does not."""
    run = _operable(request, run_id)
    sound = (run.error or {}).get("sound_checkpoint")
    if not sound:
        raise InvalidInput("This run has no sound checkpoint to go on from; start a new run.")
    if request.method != "POST":
        return render(request, "traces/run/ask.html", _context(request, run) | {"ask": "fork"})
    try:
        made = commands.fork_run(caller(request).actor, run, uuid.UUID(sound))
    except InterlockError as error:
        messages.error(request, f"Nothing was done: {error.message}")
        return redirect("run", run.id)
    messages.success(request, "This run goes on from there. The other one is as it was.")
    return redirect("run", made.id)


@page
@require_http_methods(["GET", "HEAD", "POST"])
def resume(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    """Let a paused run go on, with more budget if the form says so."""
    run = _operable(request, run_id)
    form = TopUpForm(request.POST or None, run=run)
    if request.method != "POST" or not form.is_valid():
        context = _context(request, run) | {"ask": "resume", "top_up": form}
        return render(request, "traces/run/ask.html", context, status=422 if form.errors else 200)
    limits = form.limits() or None
    return _carried_out(
        request, run, lambda actor, run: commands.resume_run(actor, run, limits), "The run goes on."
    )


def _steer(
    request: HttpRequest,
    run_id: uuid.UUID,
    name: str,
    command: Callable[[Actor, Run], Any],
    said: str,
) -> HttpResponse:
    run = _operable(request, run_id)
    if request.method != "POST":
        return render(request, "traces/run/ask.html", _context(request, run) | {"ask": name})
    return _carried_out(request, run, command, said)


def _operable(request: HttpRequest, run_id: uuid.UUID) -> Run:
    run = queries.run(caller(request).projects(), run_id)
    caller(request).require(run.project_id, Can.OPERATE)
    return run


def _carried_out(
    request: HttpRequest, run: Run, command: Callable[[Actor, Run], Any], said: str
) -> HttpResponse:
    try:
        command(caller(request).actor, run)
    except InterlockError as error:
        messages.error(request, f"Nothing was done: {error.message}")
    else:
        messages.success(request, said)
    return redirect("run", run.id)


def _context(request: HttpRequest, run: Run) -> dict[str, Any]:
    rights = access.allowed(request.user, run.project_id)
    before = _before(request)
    rows, first = _events(run, before)
    context = run_regions.page_context(run, rights)
    context |= {
        "events": rows,
        "first_seq": first,
        "has_earlier": first > 1,
        "before": before,
        "last_seq": rows[-1].seq if rows and not before else run.last_seq,
        "top_up": TopUpForm(run=run),
    }
    return context


def _before(request: HttpRequest) -> int | None:
    text = request.GET.get("before", "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 18):
        raise InvalidInput("before must be a sequence number.", field="before")
    return int(text)


def _events(run: Run, before: int | None) -> tuple[list[Any], int]:
    events = Event.objects.filter(run=run)
    if before:
        events = events.filter(seq__lt=before)
    found = list(events.order_by("-seq")[:EVENTS_SHOWN])[::-1]
    if (shown := redactor().reader(run.id)) is not None:
        for event in found:
            event.data = shown(event.data)
    return rows_of(found), found[0].seq if found else 1

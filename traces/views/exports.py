"""Exports: ask for a file of traces, see how far it is, fetch it by a link that opens it once."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from runtime_core.errors import InvalidInput
from traces.exports import requests
from traces.exports.download import download
from traces.exports.requests import REASON_CHARACTERS, Wanted
from traces.models import ExportJob
from traces.pages import caller, page

SHOWN = 50


class ExportForm(forms.Form):
    """What to put into the file, and what for."""

    project = forms.ModelChoiceField(queryset=None, empty_label=None)
    format = forms.ChoiceField(choices=ExportJob.Format)
    run_id = forms.UUIDField(label="Run", required=False, help_text="Its id; empty: all runs.")
    since = forms.DateField(
        label="From", required=False, widget=forms.DateInput(attrs={"type": "date"})
    )
    until = forms.DateField(
        label="Until", required=False, widget=forms.DateInput(attrs={"type": "date"}),
        help_text="This day is no longer in it.",
    )  # fmt: skip
    reason = forms.CharField(max_length=REASON_CHARACTERS, help_text="The audit keeps it.")

    def __init__(self, projects: Any, data: Any = None) -> None:
        super().__init__(data)
        self.fields["project"].queryset = projects  # type: ignore[attr-defined]


@page
@require_http_methods(["GET", "HEAD", "POST"])
def index(request: HttpRequest) -> HttpResponse:
    """The person's exports, and the form for another."""
    who = caller(request)
    form = ExportForm(who.projects().order_by("name"), request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            requests.ask(who, _wanted(form.cleaned_data))
            return redirect("exports")
        except InvalidInput as error:
            name = error.details.get("field")
            form.add_error(name if name in form.fields else None, error.message)
    context = {"form": form, "jobs": requests.own(who)[:SHOWN]}
    return render(request, "traces/exports.html", context, status=422 if form.errors else 200)


@page
@require_POST
def link(request: HttpRequest, job_id: uuid.UUID) -> HttpResponse:
    """Make the link that opens the file once, and follow it."""
    token = requests.link(caller(request), job_id)
    return redirect(f"{reverse('export-file', args=[job_id])}?{urlencode({'token': token})}")


@page
@require_safe
def file(request: HttpRequest, job_id: uuid.UUID) -> HttpResponseBase:
    """The file, once for each link, to the person who asked for it."""
    return download(requests.opened(caller(request), job_id, request.GET.get("token", "")))


def _wanted(data: dict[str, Any]) -> Wanted:
    return Wanted(
        project_id=data["project"].id,
        format=data["format"],
        reason=data["reason"],
        run_id=data["run_id"],
        since=_midnight(data["since"]),
        until=_midnight(data["until"]),
    )


def _midnight(day: dt.date | None) -> dt.datetime | None:
    return dt.datetime(day.year, day.month, day.day, tzinfo=dt.UTC) if day else None

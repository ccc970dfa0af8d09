"""Pages of a person's notifications: the list behind the bell, and what they want to be told."""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from approvals.notify import preferences, queries
from approvals.notify.forms import QuietForm
from approvals.notify.message import said
from approvals.notify.models import Channel, Endpoint
from runtime_core.access import visible_projects
from runtime_core.values import Risk


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def notifications(request: HttpRequest) -> HttpResponse:
    """What the person was told, newest first; a POST marks one or all of it as read."""
    if request.method == "POST":
        unread = queries.of(request.user).filter(read_at__isnull=True)
        chosen = _id_of(request.POST.get("notification", ""))
        unread = unread.filter(id=chosen) if chosen else unread
        unread.update(read_at=Now())
        return HttpResponseRedirect(reverse("notifications"))
    rows = [(one, said(one.notice)) for one in queries.newest(request.user)]
    context = {"rows": rows, "list_max": queries.LIST_MAX}
    return render(request, "approvals/notifications.html", context)


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def settings_page(request: HttpRequest) -> HttpResponse:
    """Which risks come over which channel, when it is quiet, and what is put together."""
    wishes = preferences.preferences_of(request.user)
    form = QuietForm(request.POST or None, instance=wishes.quiet)
    wanted = {pair for pair, is_wanted in wishes.choices.items() if is_wanted}
    if request.method == "POST":
        wanted = {pair for pair in wishes.choices if ":".join(pair) in request.POST}
        if form.is_valid():
            preferences.save(request.user, wanted, form.cleaned_data)
            messages.success(request, "Your notification settings are saved.")
            return HttpResponseRedirect(reverse("notification-settings"))
    context = {
        "form": form,
        "channels": list(Channel),
        "matrix": _matrix(wanted),
        "endpoints": _own_endpoints(request.user),
    }
    status = 422 if form.errors else 200
    return render(request, "approvals/notification_settings.html", context, status=status)


def _matrix(wanted: set[tuple[str, str]]) -> list[tuple[str, list[tuple[str, str, bool]]]]:
    return [
        (
            risk.value,
            [
                (f"{risk.value}:{channel.value}", channel.label, (risk, channel) in wanted)
                for channel in Channel
            ],
        )
        for risk in Risk
    ]


def _own_endpoints(user: Any) -> list[Endpoint]:
    projects = visible_projects(user).values("id")
    found = Endpoint.objects.filter(owner_id=user.pk, is_active=True, project__in=projects)
    return list(found.select_related("project"))


def _id_of(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None

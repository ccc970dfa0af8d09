"""What a person chose for this browser: theme, single-letter keys, the zone of times. Kept in cookies of
their own, which page and server both read and write, so that it works without JavaScript too.
"""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from approvals.inbox.views import actor_of
from runtime_core import access_tokens
from runtime_core.errors import NotFound

# The first of each is what holds where nothing was chosen; static/js/choices.js has the same names.
CHOICES = {
    "theme": ("system", "light", "dark"),
    "keys": ("on", "off"),
    "zone": ("local", "utc"),
}
LABELS = {
    "theme": ("Theme", ("As this device", "Light", "Dark")),
    "keys": ("Single-letter keys", ("On", "Off")),
    "zone": ("Times", ("In this device's zone", "In UTC")),
}
KEPT_S = 365 * 24 * 3600


def choices(request: HttpRequest) -> dict[str, Any]:
    """`choices` for every page: what of it holds in this browser."""
    return {"choices": chosen(request)}


def chosen(request: HttpRequest) -> dict[str, str]:
    """Each choice by name; a cookie that says anything else says nothing."""
    found = {name: request.COOKIES.get(f"interlock_{name}", "") for name in CHOICES}
    return {
        name: found[name] if found[name] in values else values[0]
        for name, values in CHOICES.items()
    }


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def settings_page(request: HttpRequest) -> HttpResponse:
    """A person's own settings in one place; a POST keeps the choices, or ends one of their tokens."""
    if "token" in request.POST:
        return _token_ended(request)
    if request.method == "POST":
        return _kept(request)
    context = {
        "fields": _fields(chosen(request)),
        "tokens": access_tokens.of(request.user),
    }
    return render(request, "settings.html", context)


def _fields(now: dict[str, str]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "label": LABELS[name][0],
            "options": [
                {"value": value, "label": label, "is_chosen": value == now[name]}
                for value, label in zip(values, LABELS[name][1], strict=True)
            ],
        }
        for name, values in CHOICES.items()
    ]


def _kept(request: HttpRequest) -> HttpResponse:
    answer = HttpResponseRedirect(reverse("settings"))
    for name, values in CHOICES.items():
        if (value := request.POST.get(name)) in values:
            answer.set_cookie(
                f"interlock_{name}",
                value,
                max_age=KEPT_S,
                samesite="Lax",
                secure=request.is_secure(),
            )
    messages.success(request, "Your settings are saved in this browser.")
    return answer


def _token_ended(request: HttpRequest) -> HttpResponse:
    try:
        access_tokens.revoke(actor_of(request), uuid.UUID(request.POST["token"]))
    except (ValueError, NotFound):
        messages.error(request, "Nothing was done: there is no such token of yours.")
    else:
        messages.success(request, "The token no longer lets anybody in.")
    return HttpResponseRedirect(reverse("settings"))

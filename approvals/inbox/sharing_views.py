"""Pages about sharing the work: claim, assignment and snooze of one request; delegations, remembered
approvals and saved views as lists. A GET changes nothing.
"""

from __future__ import annotations

import datetime as dt
import uuid
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from approvals import grants, queries
from approvals.inbox.sharing_forms import DelegationForm, ViewForm
from approvals.inbox.views import actor_of
from approvals.models import Grant
from approvals.people import delegation
from approvals.teamwork import claims, saved_views
from runtime_core import ports
from runtime_core.errors import InterlockError, InvalidInput, NotFound
from runtime_core.sanitize import canonical

LIST_MAX = 200


@dataclass(frozen=True, slots=True)
class Remembered:
    """One remembered approval as the page shows it."""

    grant: Grant
    conditions: str
    is_live: bool
    may_end: bool


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def share(request: HttpRequest, interrupt_id: uuid.UUID) -> HttpResponse:
    """Claim, release, give away or put off one request, as the form's `do` says."""
    address = reverse("interrupt", args=[interrupt_id])
    try:
        queries.get(request.user, interrupt_id)
        if request.method == "POST" and _share(request, interrupt_id):
            address = reverse("inbox")
    except NotFound as error:
        raise Http404(error.message) from None
    except InterlockError as error:
        messages.error(request, f"Nothing was done: {error.message}")
    query = request.GET.urlencode()
    return HttpResponseRedirect(f"{address}?{query}" if query else address)


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def remembered(request: HttpRequest) -> HttpResponse:
    """All remembered approvals of the person's projects; a POST ends one."""
    if request.method == "POST":
        return _ended(request, "grant", grants.revoke, "remembered", "It will be asked again.")
    rows = [_remembered(request.user, one) for one in grants.visible(request.user)[:LIST_MAX]]
    return render(request, "approvals/remembered.html", {"rows": rows})


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def delegations(request: HttpRequest) -> HttpResponse:
    """Who stands in for whom; a POST names somebody for oneself, or ends one."""
    if "end" in request.POST:
        return _ended(request, "end", delegation.revoke, "delegations", "It is over.")
    form = DelegationForm(request.POST or None, user=request.user)
    if request.method == "POST" and form.is_valid() and _delegated(request, form):
        messages.success(request, "They stand in for you.")
        return HttpResponseRedirect(reverse("delegations"))
    found = delegation.visible(request.user)[:LIST_MAX]
    rows = [(one, delegation.may_revoke(request.user, one)) for one in found]
    status = 422 if form.errors else 200
    return render(
        request, "approvals/delegations.html", {"form": form, "rows": rows}, status=status
    )


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def views(request: HttpRequest) -> HttpResponse:
    """The person's saved views; a POST saves or deletes one."""
    if "delete" in request.POST:
        return _ended(
            request,
            "delete",
            lambda actor, user, found: saved_views.delete(user, found),
            "saved-views",
            "The view is deleted.",
        )
    form = ViewForm(
        request.POST or None, user=request.user, initial={"query": request.GET.urlencode()}
    )
    if request.method == "POST" and form.is_valid() and _saved(request, form):
        messages.success(request, "The view is saved.")
        return HttpResponseRedirect(reverse("saved-views"))
    context = {"form": form, "rows": saved_views.visible(request.user)[:LIST_MAX]}
    return render(
        request, "approvals/saved_views.html", context, status=422 if form.errors else 200
    )


def _share(request: HttpRequest, interrupt_id: uuid.UUID) -> bool:
    """Do what the form says; True if the request is out of the person's sight now."""
    actor, form = actor_of(request), request.POST
    match form.get("do"):
        case "claim":
            claims.claim(actor, interrupt_id)
        case "release":
            claims.release(actor, interrupt_id)
        case "assign":
            claims.assign(actor, interrupt_id, form.getlist("people"), form.getlist("groups"))
        case "snooze":
            minutes = form.get("minutes", "")
            put_off = claims.snooze(
                actor, interrupt_id, int(minutes) if minutes.isdecimal() else -1
            )
            if put_off is None:
                return False
            messages.success(
                request, f"Out of your sight until {put_off.until:%Y-%m-%d %H:%M} UTC."
            )
            return True
        case _:
            raise InvalidInput("do: must be claim, release, assign or snooze.", field="do")
    return False


def _ended(request: HttpRequest, field: str, command: Any, page: str, said: str) -> HttpResponse:
    try:
        command(actor_of(request), request.user, _id_of(request.POST.get(field, "")))
    except NotFound as error:
        raise Http404(error.message) from None
    except InterlockError as error:
        messages.error(request, f"Nothing was done: {error.message}")
    else:
        messages.success(request, said)
    return HttpResponseRedirect(reverse(page))


def _id_of(text: str) -> uuid.UUID:
    try:
        return uuid.UUID(text)
    except ValueError:
        raise NotFound() from None


def _remembered(user: Any, grant: Grant) -> Remembered:
    return Remembered(
        grant=grant,
        conditions=canonical(ports.redactor().redact(grant.conditions).value),
        is_live=grants.is_live(grant),
        may_end=grants.may_revoke(user, grant),
    )


def _delegated(request: HttpRequest, form: DelegationForm) -> bool:
    given = form.cleaned_data
    wish = delegation.Wish(
        ends_at=dt.datetime.combine(given["until"], dt.time.max, dt.UTC),
        tool=given["tool"],
        max_risk=given["max_risk"],
    )
    try:
        delegation.delegate(
            actor_of(request), request.user, given["project"], request.user, given["delegate"], wish
        )
    except InterlockError as error:
        form.add_error(None, error.message)
        return False
    return True


def _saved(request: HttpRequest, form: ViewForm) -> bool:
    given = form.cleaned_data
    try:
        saved_views.save(
            request.user,
            given["name"],
            given["query"],
            project=given["project"],
            is_default=given["is_default"],
        )
    except InterlockError as error:
        form.add_error(None, error.message)
        return False
    return True

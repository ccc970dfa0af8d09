"""The inbox's pages: list and request side by side; a GET never decides."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from approvals import grants, queries
from approvals.deciding import changing, commands
from approvals.deciding.opinion import Opinion
from approvals.inbox import lines, pages, sharing
from approvals.inbox.decision_form import DecisionForm, empty_form, error_field, read_form
from approvals.inbox.desk import SORTS, VIEWS, Desk, Filters, desk_of
from approvals.queries import Shown
from approvals.teamwork import saved_views
from runtime_core.errors import DecisionConflict, InvalidPayload, NotAllowed, NotFound
from runtime_core.sanitize import storable_text
from runtime_core.states import InterruptStatus
from runtime_core.values import Actor, Risk

NAME_MAX = 100


@login_required
@never_cache
@require_GET
def inbox(request: HttpRequest) -> HttpResponse:
    """The list, first as the person's own default view has it; `?fragment=list` gives it alone."""
    if not request.GET and (query := saved_views.default_query(request.user)):
        return HttpResponseRedirect(f"{reverse('inbox')}?{query}")
    filters = filters_of(request)
    template = "_list.html" if request.GET.get("fragment") == "list" else "inbox.html"
    context = pages.list_context(desk_of(request), filters, request.GET.get("after", "")[:200])
    return render(request, f"approvals/{template}", context)


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def interrupt(request: HttpRequest, interrupt_id: uuid.UUID) -> HttpResponse:
    """One request beside the list; a POST decides on it, bound to the version and digest in its
    form.
    """
    if request.method == "POST":
        return _decide(request, interrupt_id)
    try:
        changing.keep_current(queries.get(request.user, interrupt_id))
        shown = queries.shown_to(request.user, queries.get(request.user, interrupt_id))
    except NotFound as error:
        raise Http404(error.message) from None
    return answer(request, shown, empty_form(shown))


def filters_of(request: HttpRequest) -> Filters:
    """The filters in the address; what is not known there is left out."""
    view = request.GET.get("view", "")
    risk = request.GET.get("risk", "")
    sort = request.GET.get("sort", "")
    return Filters(
        view=view if view in VIEWS else desk_of(request).default_view,
        risk=risk if risk in list(Risk) else "",
        agent=storable_text(request.GET.get("agent", "")).strip()[:NAME_MAX],
        tool=storable_text(request.GET.get("tool", "")).strip()[:NAME_MAX],
        sort=sort if sort in SORTS else "expiry",
    )


def actor_of(request: HttpRequest) -> Actor:
    """The signed-in person as events and audit name them."""
    user = request.user
    return Actor(user.pk, user.get_username(), via="web", superuser=user.is_superuser)


def shown_to(request: HttpRequest, interrupt_id: uuid.UUID) -> Shown:
    """The request that a form is about. A stranger's attempt is kept in the audit, and answered as if
    there were nothing.
    """
    try:
        return queries.shown_to(request.user, queries.get(request.user, interrupt_id))
    except NotFound as error:
        opinion = Opinion(request.POST.get("action", "")[:20], 0, "")
        with suppress(NotFound):
            commands.admit(actor_of(request), interrupt_id, opinion)
        raise Http404(error.message) from None


def use(
    request: HttpRequest, shown: Shown, form: DecisionForm, act: Callable[[], object]
) -> HttpResponse:
    """Do what the form asks, and answer with what is there then; a conflict keeps what was typed."""
    try:
        act()
    except InvalidPayload as error:
        form.errors[error_field(error)] = error.message
        return answer(request, shown, form, status=422)
    except DecisionConflict as error:
        return _conflict(request, shown, form, error)
    except NotAllowed as error:
        return _refused(request, form, error)
    except NotFound as error:
        raise Http404(error.message) from None
    return _receipt(request, shown)


def _decide(request: HttpRequest, interrupt_id: uuid.UUID) -> HttpResponse:
    shown = shown_to(request, interrupt_id)
    form = read_form(_first_values(request.POST), shown)
    if form.has_errors and shown.ruling.may and shown.interrupt.status == InterruptStatus.OPEN:
        return answer(request, shown, form, status=422)
    actor = actor_of(request)

    def act() -> None:
        if form.is_proposal:
            changing.propose(actor, interrupt_id, form.opinion())
            return
        wish = grants.wish_of(request.POST.dict())
        grants.decide_and_remember(actor, interrupt_id, form.opinion(), wish, undoable=True)

    return use(request, shown, form, act)


def _receipt(request: HttpRequest, shown: Shown) -> HttpResponse:
    address = reverse("interrupt", args=[shown.interrupt.id])
    if not request.headers.get("HX-Request"):
        # A reload of the receipt must not send the form again.
        query = request.GET.urlencode()
        return HttpResponseRedirect(f"{address}?{query}" if query else address)
    now = queries.shown_to(request.user, queries.get(request.user, shown.interrupt.id))
    said = lines.outcome(now.interrupt, Desk(request.user).open_count)
    return answer(request, now, empty_form(now), said=said)


def _conflict(
    request: HttpRequest, seen: Shown, form: DecisionForm, error: DecisionConflict
) -> HttpResponse:
    """What is there now beside what the person wanted, which stays theirs to copy or apply."""
    now = queries.shown_to(request.user, queries.get(request.user, seen.interrupt.id))
    return answer(request, now, form, conflict=error, status=error.http_status)


def _refused(request: HttpRequest, form: DecisionForm, error: NotAllowed) -> HttpResponse:
    name = "_refused.html" if request.headers.get("HX-Request") else "refused.html"
    return render(request, f"approvals/{name}", {"reason": error.message, "form": form}, status=403)


def answer(
    request: HttpRequest,
    shown: Shown,
    form: DecisionForm,
    *,
    conflict: DecisionConflict | None = None,
    status: int = 200,
    said: str = "",
) -> HttpResponse:
    """The request as it looks to this person: the fragment for htmx, else the whole page.
    `said` is told to screen readers. Whatever led here, a look at exact arguments is kept.
    """
    if shown.is_raw:
        commands.record_viewing(actor_of(request), shown.interrupt)
    context: dict[str, Any] = pages.detail_context(shown, form, conflict)
    context |= sharing.context(request.user, shown.interrupt)
    context |= {"query": request.GET.urlencode(), "said": said}
    if request.headers.get("HX-Request"):
        return render(request, "approvals/_detail.html", context, status=status)
    context |= pages.list_context(desk_of(request), filters_of(request))
    return render(request, "approvals/inbox.html", context, status=status)


def _first_values(posted: QueryDict) -> dict[str, str]:
    """Each field once: a form that sends one twice is taken by its first, which is what was shown
    first.
    """
    return {key: posted.getlist(key)[0] for key in posted}

"""The sheet of several requests, and the page of what became of each."""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from approvals.deciding import commands
from approvals.inbox import pages, together
from approvals.inbox.decision_form import empty_form
from approvals.inbox.together import Item
from approvals.inbox.views import actor_of
from approvals.inbox.wording import REJECT_REASONS
from approvals.queries import Shown
from runtime_core.errors import InvalidPayload, NotFound


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def review(request: HttpRequest) -> HttpResponse:
    """`?id=…&id=…` shows them whole; a POST decides on each by the version that its form showed."""
    if request.method == "POST":
        return _decide(request)
    try:
        ids = [_uuid(text) for text in request.GET.getlist("id")[: together.MOST + 1]]
        shown = together.gather(request.user, ids)
    except InvalidPayload as error:
        return _sheet(request, [], error=error, status=422)
    except NotFound as error:
        raise Http404(error.message) from None
    return _sheet(request, shown)


def _decide(request: HttpRequest) -> HttpResponse:
    items: list[Item] = []
    action = request.POST.get("action", "")
    reason = request.POST.get("reason", "").replace("\r\n", "\n").strip()
    try:
        items = [_item(text) for text in request.POST.getlist("item")[: together.MOST + 1]]
        results = together.decide(actor_of(request), request.user, items, action, reason)
    except InvalidPayload as error:
        return _again(request, items, error, reason)
    return render(
        request,
        "approvals/together_results.html",
        {
            "results": results,
            "done": sum(one.refusal is None for one in results),
            "action": action,
        },
    )


def _again(
    request: HttpRequest, items: list[Item], error: InvalidPayload, reason: str
) -> HttpResponse:
    """The sheet with what is wrong on it; what was typed stays."""
    try:
        shown = together.gather(request.user, [one.id for one in items])
    except InvalidPayload:
        shown = []
    except NotFound as missing:
        raise Http404(missing.message) from None
    return _sheet(request, shown, error=error, reason=reason, status=422)


def _sheet(
    request: HttpRequest,
    shown: list[Shown],
    *,
    error: InvalidPayload | None = None,
    reason: str = "",
    status: int = 200,
) -> HttpResponse:
    for one in shown:
        if one.is_raw:
            commands.record_viewing(actor_of(request), one.interrupt)
    sheets = [pages.detail_context(one, empty_form(one), None) for one in shown]
    context: dict[str, Any] = {
        "sheets": sheets,
        "decidable": sum(sheet["can_decide"] for sheet in sheets),
        "tool": shown[0].interrupt.tool_call.tool if shown else "",
        "most": together.MOST,
        "error": error,
        "error_field": error.data.get("field") if error else "",
        "reason": reason,
        "reject_reasons": REJECT_REASONS,
    }
    return render(request, "approvals/together.html", context, status=status)


def _item(text: str) -> Item:
    parts = text.split(":")
    if len(parts) != 3 or not (parts[1].isascii() and parts[1].isdigit() and len(parts[1]) < 10):
        raise InvalidPayload(
            "The form does not say which version it is about. Select the requests again.",
            field="id",
        )
    return Item(_uuid(parts[0]), int(parts[1]), parts[2])


def _uuid(text: str) -> uuid.UUID:
    try:
        return uuid.UUID(text)
    except ValueError:
        raise InvalidPayload(
            "One of the selected requests has no valid number. Select them again.", field="id"
        ) from None

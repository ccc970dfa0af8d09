"""Beside deciding: taking a decision back, deciding past the policy, and why which policy applies."""

from __future__ import annotations

import uuid

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from approvals import queries
from approvals.deciding import changing, commands
from approvals.inbox.decision_form import DecisionForm, read_override
from approvals.inbox.explaining import policy_context
from approvals.inbox.views import actor_of, answer, shown_to, use
from runtime_core.errors import NotFound


@login_required
@require_POST
def undo(request: HttpRequest, interrupt_id: uuid.UUID) -> HttpResponse:
    """Take one's own decision back; the page is the open request again."""
    version = request.POST.get("version", "")
    number = int(version) if version.isascii() and version.isdigit() and len(version) < 10 else 0
    shown = shown_to(request, interrupt_id)
    form = DecisionForm(action="undo", version=str(number))
    return use(request, shown, form, lambda: changing.undo(actor_of(request), interrupt_id, number))


@login_required
@require_POST
def override(request: HttpRequest, interrupt_id: uuid.UUID) -> HttpResponse:
    """Decide alone as a superuser, with a reason."""
    shown = shown_to(request, interrupt_id)
    form = read_override(request.POST, shown)
    if form.has_errors:
        return answer(request, shown, form, status=422)
    return use(
        request,
        shown,
        form,
        lambda: commands.override(actor_of(request), interrupt_id, form.opinion()),
    )


@login_required
@never_cache
@require_GET
def policy(request: HttpRequest, interrupt_id: uuid.UUID) -> HttpResponse:
    """Which policy a request stands under, and why the others do not apply."""
    try:
        interrupt = queries.get(request.user, interrupt_id)
    except NotFound as error:
        raise Http404(error.message) from None
    return render(request, "approvals/policy.html", policy_context(interrupt))

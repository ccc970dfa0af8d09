"""One line of the inbox's list by itself, for a page that was told that it changed."""

from __future__ import annotations

import uuid

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from approvals import queries
from approvals.inbox import lines, pages
from approvals.inbox.views import filters_of
from runtime_core.errors import NotFound


@login_required
@never_cache
@require_GET
def row(request: HttpRequest, interrupt_id: uuid.UUID) -> HttpResponse:
    """The line as it is now: open, or a receipt of what became of it."""
    try:
        interrupt = queries.get(request.user, interrupt_id)
    except NotFound as error:
        raise Http404(error.message) from None
    context = {
        "row": lines.row_now(request.user, interrupt),
        "list_query": pages.query_of(filters_of(request)),
    }
    return render(request, "approvals/_row.html", context)

"""What every page here shares: who asks, and what the errors of the core look like to a person."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache

from runtime_core.callers import Caller
from runtime_core.errors import NotAllowed, NotFound, RequestError

View = Callable[..., HttpResponse]


def page(view: View) -> View:
    """A page for signed-in people: 404 for what they may not see, 403 with the missing right."""

    @functools.wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except NotFound as error:
            raise Http404(error.message) from None
        except RequestError as error:
            return refused(request, error)

    return login_required(never_cache(wrapped))


def refused(request: HttpRequest, error: RequestError) -> HttpResponse:
    """The page that says what was not done, and why."""
    context = {"error": error, "forbidden": isinstance(error, NotAllowed)}
    return render(request, "traces/refused.html", context, status=error.http_status)


def caller(request: HttpRequest) -> Caller:
    """The person who asks."""
    return Caller(user=request.user, via="web")

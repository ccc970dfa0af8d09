"""Lets a request in: a bearer token, or a session cookie with the CSRF header where something is written."""

from __future__ import annotations

from typing import cast

from django.http import HttpRequest
from ninja.security.base import AuthBase
from ninja.utils import check_csrf

from runtime_core.callers import Caller, Credentials
from runtime_core.errors import CsrfFailed

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


class CallerAuth(AuthBase):
    """ninja's hook: what it returns is `request.auth`, our Caller."""

    openapi_type = "http"
    openapi_scheme = "bearer"

    def __call__(self, request: HttpRequest) -> Caller:
        given = credentials(request)
        found = given.caller()
        if given.bearer is None and request.method not in _SAFE and check_csrf(request):
            raise CsrfFailed()
        return found


def credentials(request: HttpRequest) -> Credentials:
    """The credentials of this request, to resolve again later."""
    return Credentials.of(request.headers.get("Authorization"), request.COOKIES)


def caller(request: HttpRequest) -> Caller:
    """Who asks; every authenticated endpoint may call it."""
    return cast(Caller, request.auth)  # type: ignore[attr-defined]

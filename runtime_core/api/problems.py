"""Every error of the API as `application/problem+json` (RFC 9457) with a stable `code`, whoever raised it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent
from django.core.serializers.json import DjangoJSONEncoder
from django.db import DataError, InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.utils.deprecation import MiddlewareMixin
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError

from runtime_core.errors import InterlockError, TooLarge

API_PREFIX = "/api/"
PROBLEM_TYPE = "application/problem+json"
RETRY_AFTER_S = 5

_RESERVED = frozenset({"type", "title", "status", "detail", "code"})
_CODES = {
    400: "bad_request",
    401: "unauthenticated",
    403: "not_allowed",
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    429: "backpressure",
    503: "unavailable",
}
_DETAILS = {
    400: "The request could not be understood.",
    404: "There is nothing at this address; the list of addresses is at /api/v1/openapi.json.",
    405: "This address does not take that method; the Allow header says which ones it takes.",
    500: "Something went wrong on the server; its log has the details.",
}

_log = logging.getLogger(__name__)


def problem(
    status: int, code: str, detail: str, data: Mapping[str, Any] | None = None
) -> HttpResponse:
    """A problem document; `data` is added beside the standard members."""
    extra = {key: value for key, value in (data or {}).items() if key not in _RESERVED}
    body = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
        **extra,
    }
    response = JsonResponse(body, DjangoJSONEncoder, status=status, content_type=PROBLEM_TYPE)
    if status in (429, 503):
        response["Retry-After"] = str(int(extra.get("retry_after") or RETRY_AFTER_S))
    if status == 401:
        response["WWW-Authenticate"] = 'Bearer realm="interlock"'
    return response


def register(api: NinjaAPI) -> None:
    """Make the API answer every exception with a problem document."""
    for kind, handler in _HANDLERS.items():
        api.add_exception_handler(kind, handler)


class ProblemMiddleware(MiddlewareMixin):
    """Turns what Django itself answers under /api/ (unknown paths and methods, bad hosts, crashes) into problems."""

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        if not request.path.startswith(API_PREFIX) or response.status_code < 400:
            return response
        if response.get("Content-Type", "").startswith(PROBLEM_TYPE):
            return response
        status = response.status_code
        detail = _DETAILS.get(status, HTTPStatus(status).description)
        told = problem(status, _CODES.get(status, "internal"), detail)
        for header in ("Allow", "Retry-After"):
            if header in response.headers:
                told[header] = response[header]
        return told


def _of_ours(request: HttpRequest, error: InterlockError) -> HttpResponse:
    return problem(error.http_status, error.code, error.message, error.data)


def _of_validation(request: HttpRequest, error: ValidationError) -> HttpResponse:
    found = [{"field": _field(e["loc"]), "message": e["msg"]} for e in error.errors]
    first = found[0]
    detail = f"{first['field']}: {first['message']}" if first["field"] else first["message"]
    return problem(422, "invalid_input", detail, {"errors": found})


def _field(location: tuple[Any, ...]) -> str:
    # ("body", "name of our parameter", "limits", "max_steps") or ("query", "limit")
    parts = location[2:] if location[0] == "body" else location[1:]
    return ".".join(str(part) for part in parts)


def _of_http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    # ninja wraps what the parser of bodies raises.
    if isinstance(error.__cause__, InterlockError):
        return _of_ours(request, error.__cause__)
    status = error.status_code
    return problem(status, _CODES.get(status, "bad_request"), str(error))


def _of_missing(request: HttpRequest, error: Http404) -> HttpResponse:
    return problem(404, "not_found", "There is no such thing, or you may not see it.")


def _of_too_much(request: HttpRequest, error: Exception) -> HttpResponse:
    return _of_ours(request, TooLarge())


def _of_unstorable(request: HttpRequest, error: Exception) -> HttpResponse:
    detail = "The request holds a value that cannot be stored or looked up, such as a NUL."
    return problem(422, "invalid_input", detail)


def _of_database(request: HttpRequest, error: Exception) -> HttpResponse:
    _log.error("the database did not answer: %s", error)
    return problem(503, "unavailable", "The database does not answer; nothing was done. Try again.")


def _of_anything(request: HttpRequest, error: Exception) -> HttpResponse:
    _log.error("an API call failed", exc_info=error)
    return problem(500, "internal", _DETAILS[500])


_HANDLERS: dict[type[Exception], Callable[[HttpRequest, Any], HttpResponse]] = {
    InterlockError: _of_ours,
    ValidationError: _of_validation,
    HttpError: _of_http_error,
    Http404: _of_missing,
    RequestDataTooBig: _of_too_much,
    TooManyFieldsSent: _of_too_much,
    DataError: _of_unstorable,
    OperationalError: _of_database,
    InterfaceError: _of_database,
    Exception: _of_anything,
}

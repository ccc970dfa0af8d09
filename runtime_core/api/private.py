"""Keeps answers of the API out of every cache: they may hold what only this caller may see."""

from __future__ import annotations

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.deprecation import MiddlewareMixin

from runtime_core.api.problems import API_PREFIX


class PrivateMiddleware(MiddlewareMixin):
    """Adds `no-store` to what is answered under /api/ and says nothing about caching itself."""

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        if request.path.startswith(API_PREFIX):
            response.headers.setdefault("Cache-Control", "no-store")
        return response

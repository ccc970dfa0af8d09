"""Every address the product answers, by app. An app adds its own `urls` module to a list here."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.urls import URLPattern, URLResolver, path

from config import health

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("admin/", admin.site.urls),
    # API: path("api/v1/", api.urls)
    # Pages: path("", include("traces.urls")), path("", include("approvals.urls"))
]

# Websockets: path("ws/runs/<uuid:run_id>/", Consumer.as_asgi()), …
websocket_urlpatterns: list[Any] = []

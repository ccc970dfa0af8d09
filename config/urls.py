"""Every address the product answers, by app. An app adds its own `urls` module to a list here."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.templatetags.static import static
from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView

from approvals.consumers import InboxPageSocket
from config import choices, health, metrics
from config.api import api
from runtime_core.consumers import RunSocket
from traces.consumers import RunPageSocket

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    # Browsers ask here where a page names no icon, as the admin's do not.
    path("favicon.ico", RedirectView.as_view(url=static("img/favicon.svg"))),
    path("metrics", metrics.metrics, name="metrics"),
    path("admin/", admin.site.urls),
    path("api/v1/", api.urls),
    path("login/", LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("settings/", choices.settings_page, name="settings"),
    path("", include("approvals.urls")),
    path("", include("traces.urls")),
]

# Who connects to one of these is checked by the socket itself; where from, by config.origin.
websocket_urlpatterns: list[Any] = [
    path("api/v1/ws/runs/<uuid:run_id>/", RunSocket.as_asgi()),
    path("ws/runs/<uuid:run_id>/", RunPageSocket.as_asgi()),
    path("ws/inbox/", InboxPageSocket.as_asgi()),
]

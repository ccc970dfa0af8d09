"""Addresses of the inbox."""

from __future__ import annotations

from django.urls import path

from approvals import views
from approvals.notify import views as notify

urlpatterns = [
    path("inbox/", views.inbox, name="inbox"),
    path("inbox/<uuid:interrupt_id>/", views.interrupt, name="interrupt"),
    path("notifications/", notify.notifications, name="notifications"),
    path("settings/notifications/", notify.settings_page, name="notification-settings"),
]

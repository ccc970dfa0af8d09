"""Addresses of the inbox."""

from __future__ import annotations

from django.urls import path

from approvals.inbox import row_views, sharing_views, side_views, together_views, views
from approvals.notify import views as notify

urlpatterns = [
    path("inbox/", views.inbox, name="inbox"),
    path("inbox/<uuid:interrupt_id>/", views.interrupt, name="interrupt"),
    path("inbox/<uuid:interrupt_id>/row/", row_views.row, name="interrupt-row"),
    path("inbox/<uuid:interrupt_id>/share/", sharing_views.share, name="interrupt-share"),
    path("inbox/remembered/", sharing_views.remembered, name="remembered"),
    path("inbox/delegations/", sharing_views.delegations, name="delegations"),
    path("inbox/together/", together_views.review, name="together"),
    path("inbox/views/", sharing_views.views, name="saved-views"),
    path("inbox/<uuid:interrupt_id>/undo/", side_views.undo, name="interrupt_undo"),
    path("inbox/<uuid:interrupt_id>/override/", side_views.override, name="interrupt_override"),
    path("inbox/<uuid:interrupt_id>/policy/", side_views.policy, name="interrupt_policy"),
    path("notifications/", notify.notifications, name="notifications"),
    path("settings/notifications/", notify.settings_page, name="notification-settings"),
]

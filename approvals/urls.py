"""Addresses of the inbox."""

from __future__ import annotations

from django.urls import path

from approvals import views

urlpatterns = [
    path("inbox/", views.inbox, name="inbox"),
    path("inbox/<uuid:interrupt_id>/", views.interrupt, name="interrupt"),
]

"""The audit and the spans in the admin: to look at, never to change."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

import traces.admin_redaction
import traces.admin_retention  # noqa: F401  (registers its pages)
from runtime_core.admin_forms import LookOnly
from runtime_core.models import Run
from traces.models import AuditEntry, SpanRow


@admin.register(AuditEntry)
class AuditEntryAdmin(LookOnly):
    """Entries with their place in the chain."""

    list_display = ["seq", "at", "actor_name", "action", "object_type", "object_id"]
    list_filter = ["action", "via"]
    search_fields = ["object_id", "actor_name", "run_id"]
    ordering = ["-id"]
    show_full_result_count = False


@admin.register(SpanRow)
class SpanAdmin(LookOnly):
    """Spans of every run."""

    list_display = ["name", "kind", "status", "run_id", "started_at", "ended_at"]
    list_filter = ["kind", "status"]
    search_fields = ["run_id", "name"]
    ordering = ["-started_at"]
    show_full_result_count = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """All spans but those of runs that are being deleted, which no foreign key names."""
        hidden = Run.everything.filter(deleted_at__isnull=False)
        return super().get_queryset(request).exclude(run_id__in=hidden.values("id"))

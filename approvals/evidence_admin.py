"""Decisions and versions in the admin: to look at, never to change."""

from __future__ import annotations

from django.contrib import admin

from approvals.models import Decision, Revision
from runtime_core.admin_forms import LookOnly


@admin.register(Decision)
class DecisionAdmin(LookOnly):
    """What people decided."""

    list_display = [
        "actor_name",
        "action",
        "interrupt",
        "version",
        "via",
        "overridden",
        "created_at",
    ]
    list_filter = ["action", "via", "overridden"]
    list_select_related = ["interrupt"]
    search_fields = ["actor_name", "interrupt__id"]
    show_full_result_count = False


@admin.register(Revision)
class RevisionAdmin(LookOnly):
    """What stood to be decided on. The exact arguments are not shown here."""

    list_display = ["interrupt", "version", "cause", "actor_name", "created_at"]
    list_filter = ["cause"]
    list_select_related = ["interrupt"]
    exclude = ["args_text"]
    show_full_result_count = False

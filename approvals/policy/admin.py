"""Approval policies and the groups that they name, in the admin."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest

from approvals.models import ApprovalPolicy, ApproverGroup
from approvals.policy import versions as policy_versions
from approvals.policy.form import PolicyForm
from runtime_core.admin import Recorded
from runtime_core.admin_forms import actor_of, record_change
from runtime_core.errors import InvalidInput


@admin.register(ApprovalPolicy)
class ApprovalPolicyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """The policies as they stand. An edit makes the next version; none is deleted, they are retired."""

    form = PolicyForm
    list_display = [
        "name", "number", "project", "agent", "tool", "risk", "required", "retired", "created_at",
    ]  # fmt: skip
    list_filter = ["project", "risk", "retired"]
    list_select_related = ["project"]
    search_fields = ["name", "tool", "agent"]
    actions = ["retire"]
    fieldsets = [
        (None, {"fields": ["name", "note"]}),
        ("Applies to", {"fields": ["project", "agent", "tool", "risk", "conditions"]}),
        (
            "Who decides",
            {
                "fields": [
                    "required", "roles", "groups", "people", "requester_may", "editor_may",
                    "machines_may",
                ],
            },
        ),
        (
            "Time",
            {"fields": ["expires_minutes", "on_expiry", "escalation", "undo_seconds", "remember_may"]},
        ),
    ]  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApprovalPolicy]:
        """The last version of each."""
        return super().get_queryset(request).filter(superseded_at=None)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """What somebody decided under stays."""
        return False

    def save_model(
        self, request: HttpRequest, obj: Any, form: ModelForm[Any], change: bool
    ) -> None:
        """Add the next version, unless nothing was changed."""
        assert isinstance(form, PolicyForm)  # noqa: S101 - the form of this admin
        before = ApprovalPolicy.objects.get(pk=obj.pk) if change else None
        values = form.values()
        if before and not before.retired and not _differs(before, values):
            return
        try:
            added = policy_versions.add(actor_of(request), values, before)
        except InvalidInput as error:
            self.message_user(request, error.message, messages.ERROR)
            return
        obj.pk, obj.number = added.pk, added.number
        obj._state.adding = False

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """The audit has it, with more."""
        return None

    @admin.action(description="Retire the chosen policies", permissions=["change"])
    def retire(self, request: HttpRequest, rows: QuerySet[ApprovalPolicy]) -> None:
        """From now on they apply to nothing."""
        retired = [
            policy_versions.retire(actor_of(request), row) for row in rows.filter(retired=False)
        ]
        self.message_user(
            request, f"{len(retired)} policies apply to nothing now.", messages.SUCCESS
        )


@admin.register(ApproverGroup)
class ApproverGroupAdmin(Recorded):
    """Groups that policies name; who comes in and goes out is recorded."""

    list_display = ["name", "project"]
    list_filter = ["project"]
    search_fields = ["name"]
    filter_horizontal = ["members"]
    recorded_fields = ("name", "project_id")

    def save_related(
        self, request: HttpRequest, form: ModelForm[Any], formsets: Any, change: bool
    ) -> None:
        """Save the members, and record them if they are others."""
        group = form.instance
        before = _members(group)
        super().save_related(request, form, formsets, change)
        after = _members(group)
        if before != after:
            record_change(request, group, before, after, group.project_id)


def _differs(row: ApprovalPolicy, values: dict[str, Any]) -> bool:
    return any(getattr(row, name) != value for name, value in values.items())


def _members(group: ApproverGroup) -> dict[str, Any]:
    return {"members": sorted(group.members.values_list("pk", flat=True))}

"""Retention and legal holds in the admin: what a policy lets go of is counted before it is saved."""

from __future__ import annotations

import uuid
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db import transaction
from django.db.models import Model, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from runtime_core.admin import Recorded
from runtime_core.admin_forms import actor_of
from traces import holds
from traces.models import DataClass, LegalHold, RetentionPolicy
from traces.retention.policy import kept
from traces.retention.sweep import count

DRY_RUN = "_dry_run"


@admin.register(RetentionPolicy)
class RetentionPolicyAdmin(Recorded):
    """How long classes of data are kept; what is changed holds for what is there, from the next sweep on."""

    list_display = ["data_class", "scope", "project", "agent", "days", "note"]
    list_filter = ["data_class", "scope", "project"]
    list_select_related = ["project", "agent"]
    search_fields = ["note"]
    fields = ["data_class", "scope", "project", "agent", "days", "note"]
    actions = ["count_now", "delete_selected"]
    change_form_template = "admin/retention_policy.html"
    recorded_action = "retention.changed"
    recorded_fields = ("data_class", "scope", "project_id", "agent_id", "days", "note")

    def project_of(self, row: RetentionPolicy) -> Any:
        """The project that it holds for, or that its agent is in."""
        return row.agent.project_id if row.agent else row.project_id

    def response_add(
        self, request: HttpRequest, obj: RetentionPolicy, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Say what a dry run found."""
        if DRY_RUN in request.POST:
            return self._tried(request, obj)
        return super().response_add(request, obj, post_url_continue)

    def response_change(self, request: HttpRequest, obj: RetentionPolicy) -> HttpResponse:
        """The same for a changed one."""
        if DRY_RUN in request.POST:
            return self._tried(request, obj)
        return super().response_change(request, obj)

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """The audit has it."""

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """The audit has it."""

    @admin.action(description="Count what the next sweep lets go of")
    def count_now(self, request: HttpRequest, queryset: QuerySet[RetentionPolicy]) -> None:
        """A dry run of the classes of the chosen policies, with all policies and holds as they are."""
        for name in sorted({row.data_class for row in queryset}):
            data_class = DataClass(name)
            rows = count(data_class, kept(data_class))
            messages.info(request, f"{data_class.label}: {rows} would go with the next sweep.")

    def _tried(self, request: HttpRequest, policy: RetentionPolicy) -> HttpResponse:
        data_class = DataClass(policy.data_class)
        rows = count(data_class, kept(data_class))
        transaction.set_rollback(True)
        context = {
            **self.admin_site.each_context(request),
            "title": "Dry run of a retention policy",
            "policy": policy,
            "rows": rows,
            "opts": self.opts,
        }
        return TemplateResponse(request, "admin/retention_dry_run.html", context)


class HoldForm(forms.ModelForm):  # type: ignore[type-arg]
    """A hold on something that is there."""

    class Meta:
        model = LegalHold
        fields = ["kind", "object_id", "reason"]

    def clean(self) -> dict[str, Any] | None:
        """Refuse an id that is none, or of nothing."""
        cleaned = super().clean()
        kind, object_id = self.cleaned_data.get("kind"), self.cleaned_data.get("object_id")
        if kind and object_id:
            found = holds.subject(kind, object_id)
            if found is None:
                self.add_error("object_id", f"There is no {kind} of this id.")
            else:
                self.cleaned_data["object_id"] = found.object_id
        return cleaned


@admin.register(LegalHold)
class LegalHoldAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Holds are set and released, with a record of both; never changed and never deleted."""

    form = HoldForm
    list_display = ["kind", "object_id", "reason", "set_by", "set_at", "released_by", "released_at"]
    list_filter = ["kind", ("released_at", admin.EmptyFieldListFilter)]
    list_select_related = ["set_by", "released_by"]
    search_fields = ["object_id", "reason"]
    actions = ["release"]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """A hold stays what it is; another one is another row."""
        return super().has_change_permission(request, obj) and obj is None

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """That it was there stays to be read; release it instead."""
        return False

    def save_model(
        self, request: HttpRequest, obj: Any, form: ModelForm[Any], change: bool
    ) -> None:
        """Set it; from here on no deletion touches what it names."""
        holds.put(obj, actor_of(request), _project_of(obj))

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """The audit has it."""

    @admin.action(description="Release the chosen holds", permissions=["change"])
    def release(self, request: HttpRequest, queryset: QuerySet[LegalHold]) -> None:
        """Let go of them; what was kept because of them alone goes with the next sweep."""
        released = 0
        with transaction.atomic():
            for hold in queryset.select_for_update(of=("self",)):
                released += holds.release(hold, actor_of(request), _project_of(hold))
        messages.success(request, f"{released} released.")


def _project_of(hold: Model) -> uuid.UUID | None:
    assert isinstance(hold, LegalHold)  # noqa: S101 (for the types)
    found = holds.subject(hold.kind, hold.object_id)
    return found.project_id if found else None

"""The admin's pages for quotas and queues: what they set holds from the next claim on."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Count, Q, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest

from runtime_core.admin import Recorded
from runtime_core.models import ProjectQueue, Quota, QuotaKind
from runtime_core.scheduling import quotas
from runtime_core.tools import registry
from runtime_core.transactions import one_commit

_OF = {
    QuotaKind.PROJECT: "project",
    QuotaKind.AGENT: "agent",
    QuotaKind.TOOL: "name",
    QuotaKind.MODEL: "name",
}


class QuotaForm(forms.ModelForm):  # type: ignore[type-arg]
    """A quota that names exactly what it limits."""

    class Meta:
        model = Quota
        fields = ["kind", "project", "agent", "name", "at_once"]

    def clean(self) -> dict[str, Any] | None:
        """Ask for the one field that the kind needs, refuse the others, and a second quota of the same."""
        cleaned = super().clean()
        kind = self.cleaned_data.get("kind")
        if not kind:
            return cleaned
        wanted = _OF.get(QuotaKind(kind))
        for field in ("project", "agent", "name"):
            given = self.cleaned_data.get(field)
            if field == wanted and not given:
                self.add_error(field, f"A quota of this kind needs it: {QuotaKind(kind).label}.")
            elif field != wanted and given:
                self.add_error(field, f"Leave it empty for: {QuotaKind(kind).label}.")
        name = self.cleaned_data.get("name")
        if kind == QuotaKind.TOOL and name and name not in registry():
            self.add_error("name", f"There is no tool {name!r}.")
        self.instance.key = self._key(wanted)
        same = Quota.objects.filter(kind=kind, key=self.instance.key).exclude(pk=self.instance.pk)
        if not self.errors and same.exists():
            self.add_error(None, "There is a quota for it already: change that one.")
        return cleaned

    def clean_at_once(self) -> int:
        """Within the bounds that the table has too."""
        at_once: int = self.cleaned_data["at_once"]
        if at_once > Quota.MOST:
            raise forms.ValidationError(f"At most {Quota.MOST}; without a quota there is no limit.")
        return at_once

    def _key(self, wanted: str | None) -> str:
        value = self.cleaned_data.get(wanted) if wanted else None
        return str(getattr(value, "pk", value)) if value else ""


@admin.register(Quota)
class QuotaAdmin(Recorded):
    """How much may go on at once. A lower limit breaks nothing that runs; a deleted quota limits nothing."""

    form = QuotaForm
    list_display = ["kind", "of", "at_once", "in_use", "updated_at", "updated_by"]
    list_filter = ["kind"]
    list_select_related = ["project", "agent", "updated_by"]
    autocomplete_fields = ["project", "agent"]
    recorded_action = "quota.changed"
    recorded_fields = ("kind", "key", "at_once")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Quota]:
        """With how many places are taken."""
        held = Count("permits", filter=Q(permits__held_by__isnull=False))
        rows: QuerySet[Quota] = super().get_queryset(request).annotate(held=held)
        return rows

    @admin.display(description="Of")
    def of(self, row: Quota) -> str:
        """What it limits."""
        return str(row.project or row.agent or row.name or "everything")

    @admin.display(description="In use", ordering="held")
    def in_use(self, row: Any) -> int:
        """Places that are taken now."""
        return int(row.held)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        """What a quota is of does not change: that would be another one."""
        return ["kind", "project", "agent", "name"] if obj else []

    def project_of(self, row: Quota) -> Any:
        """The project that it limits, or that its agent is in."""
        return row.agent.project_id if row.agent else row.project_id

    def save_model(
        self, request: HttpRequest, obj: Any, form: ModelForm[Any], change: bool
    ) -> None:
        """Save as this person's change, and make its places as many."""
        obj.updated_by = request.user
        with one_commit("set_quota"):
            super().save_model(request, obj, form, change)
            quotas.apply(obj)


@admin.register(ProjectQueue)
class ProjectQueueAdmin(Recorded):
    """How many runs of a project may wait; a start beyond that is refused with 429."""

    list_display = ["project", "most", "queued", "counted_at"]
    list_select_related = ["project"]
    autocomplete_fields = ["project"]
    fields = ["project", "most"]
    recorded_action = "queue.changed"
    recorded_fields = ("most",)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        """A queue stays with its project."""
        return ["project"] if obj else []

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Without its row a queue would only get a new one."""
        return False

"""Redaction policies in the admin: saving one adds its next version; a dry run saves nothing."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db import transaction
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from runtime_core import ports
from runtime_core.admin_forms import actor_of
from runtime_core.ids import new_id
from runtime_core.values import Audit, Json
from traces.models import RedactionPolicy, RedactionRule
from traces.models.redaction import SURFACES, every_surface
from traces.policies.current import current
from traces.policies.dry_run import DryRun, dry_run

DRY_RUN = "_dry_run"


class RuleInline(admin.StackedInline):  # type: ignore[type-arg]
    """The rules of a policy."""

    model = RedactionRule
    fields = ["kind", "label", "pattern", "positives", "negatives"]
    extra = 1

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Examples need few lines."""
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if db_field.name in ("positives", "negatives"):
            field.widget = forms.Textarea(attrs={"rows": 3, "cols": 80})
        return field


@admin.register(RedactionPolicy)
class RedactionPolicyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Policies with all their versions; only the newest of each can be changed, into the next."""

    list_display = ["name", "version", "enabled", "scope", "project", "agent", "tool", "created_at"]
    list_filter = ["enabled", "scope", "project"]
    list_select_related = ["project", "agent"]
    search_fields = ["name", "tool", "note"]
    fields = [
        "name", "enabled", "scope", "project", "agent", "tool", "output", "surfaces", "note",
    ]  # fmt: skip
    inlines = [RuleInline]
    actions = None
    change_form_template = "admin/redaction_policy.html"

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """What was in force stays to be read; switch a policy off instead."""
        return False

    def has_change_permission(
        self, request: HttpRequest, obj: RedactionPolicy | None = None
    ) -> bool:
        """Former versions are only looked at."""
        return super().has_change_permission(request, obj) and (obj is None or _is_newest(obj))

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        """A version of a name stays of that name."""
        return ["name"] if obj else []

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Surfaces as boxes to tick."""
        if db_field.name == "surfaces":
            return forms.MultipleChoiceField(
                choices=[(name, name) for name in SURFACES],
                widget=forms.CheckboxSelectMultiple,
                initial=every_surface,
                help_text=db_field.help_text,
            )
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """The form; of a dry run only the audit remains."""
        answer = super().changeform_view(request, *args, **kwargs)
        tried = getattr(request, "tried", None)
        if tried is not None:
            policy, found = tried
            _record(request, "redaction.dry_run", policy, changed=found.changed, of=found.looked_at)
        return answer

    def save_model(
        self, request: HttpRequest, obj: Any, form: ModelForm[Any], change: bool
    ) -> None:
        """Add the version, or the next one."""
        newest = _newest(obj.name)
        obj.pk, obj._state.adding = new_id(), True
        obj.version = newest.version + 1 if newest else 1
        obj.created_by = request.user
        obj.save()

    def save_related(
        self, request: HttpRequest, form: ModelForm[Any], formsets: Any, change: bool
    ) -> None:
        """Give the version its own copies of the rules that stay."""
        policy = form.instance
        for formset in formsets:
            for each in formset.forms:
                if each.cleaned_data and not each.cleaned_data.get("DELETE"):
                    rule = each.instance
                    rule.pk, rule._state.adding, rule.policy = new_id(), True, policy
                    rule.save()
        if DRY_RUN not in request.POST:
            _record(request, "redaction.changed", policy, **_facts(policy))
            transaction.on_commit(current.forget)

    def construct_change_message(self, *args: Any, **kwargs: Any) -> list[dict[str, Any]]:
        """None is kept here."""
        return []

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """The audit has it."""

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """The audit has it."""

    def response_add(
        self, request: HttpRequest, obj: RedactionPolicy, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Show what a dry run found."""
        if DRY_RUN in request.POST:
            return self._tried(request, obj)
        return super().response_add(request, obj, post_url_continue)

    def response_change(self, request: HttpRequest, obj: RedactionPolicy) -> HttpResponse:
        """The same for the next version."""
        if DRY_RUN in request.POST:
            return self._tried(request, obj)
        return super().response_change(request, obj)

    def _tried(self, request: HttpRequest, policy: RedactionPolicy) -> HttpResponse:
        found: DryRun = dry_run(policy)
        request.tried = (policy, found)  # type: ignore[attr-defined]
        transaction.set_rollback(True)
        context = {
            **self.admin_site.each_context(request),
            "title": f"Dry run of {policy}",
            "found": found,
            "classes": sorted(found.classes.items()),
            "policy": policy,
            "opts": self.opts,
        }
        return TemplateResponse(request, "admin/redaction_dry_run.html", context)


def _newest(name: str) -> RedactionPolicy | None:
    # Two who save at once: the second one waits, and then its version is taken.
    rows = RedactionPolicy.objects.select_for_update(of=("self",))
    return rows.filter(name=name).order_by("-version").first()


def _is_newest(policy: RedactionPolicy) -> bool:
    return not RedactionPolicy.objects.filter(name=policy.name, version__gt=policy.version).exists()


def _facts(policy: RedactionPolicy) -> dict[str, Json]:
    return {
        "enabled": policy.enabled,
        "scope": policy.scope,
        "tool": policy.tool,
        "output": policy.output,
        "surfaces": list(policy.surfaces),
        "rules": [f"{r.kind} {r.label}: {r.pattern}" for r in policy.rules.all()],
    }


def _record(request: HttpRequest, action: str, policy: RedactionPolicy, **data: Json) -> None:
    project = policy.agent.project_id if policy.agent is not None else policy.project_id
    name = {"name": policy.name, "version": policy.version}
    ports.audit().record(
        [
            Audit(
                action=action,
                actor=actor_of(request),
                object_type="redaction_policy",
                object_id=str(policy.pk),
                project_id=project,
                data=name | data,
            )
        ]
    )

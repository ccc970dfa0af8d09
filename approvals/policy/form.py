"""The admin's form of an approval policy: what cannot be matched or followed is refused beside its field."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth import get_user_model

from approvals.models import ApprovalPolicy, ApproverGroup
from approvals.policy.steps import problems_of
from approvals.policy.versions import FIELDS
from approvals.terms import EXPIRES_MAX, REQUIRED_MAX, UNDO_MAX
from runtime_core.models import Role
from runtime_core.tools.permission import validate_constraints
from runtime_core.values import Verdict

BOUNDS = {
    "required": (1, REQUIRED_MAX),
    "expires_minutes": (1, EXPIRES_MAX),
    "undo_seconds": (0, UNDO_MAX),
}


class PolicyForm(forms.ModelForm):  # type: ignore[type-arg]
    """One policy. Saving an edit makes its next version."""

    roles = forms.MultipleChoiceField(
        choices=Role.choices,
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="Without roles, groups and people, whoever decides in the project may.",
    )
    groups = forms.ModelMultipleChoiceField(
        ApproverGroup.objects.select_related("project"), required=False
    )
    people = forms.ModelMultipleChoiceField(
        get_user_model().objects.filter(is_active=True).order_by("username"), required=False
    )

    chosen_groups: list[ApproverGroup] = []

    class Meta:
        model = ApprovalPolicy
        fields = [name.removesuffix("_id") for name in FIELDS]

    def clean_groups(self) -> list[str]:
        """As a row keeps them."""
        self.chosen_groups = list(self.cleaned_data["groups"])
        return sorted(str(group.id) for group in self.chosen_groups)

    def clean_people(self) -> list[int]:
        """As a row keeps them."""
        return sorted(person.pk for person in self.cleaned_data["people"])

    def clean(self) -> dict[str, Any]:
        """Refuse what no call could be matched with and no sweep could follow."""
        cleaned = super().clean() or self.cleaned_data
        for problem in validate_constraints(cleaned.get("conditions") or {}, Verdict.ASK):
            self.add_error("conditions", problem)
        for name, (least, most) in BOUNDS.items():
            if name in cleaned and not least <= cleaned[name] <= most:
                self.add_error(name, f"From {least} to {most}.")
        self._check_escalation(cleaned)
        self._check_whom(cleaned)
        return cleaned

    def values(self) -> dict[str, Any]:
        """The fields of the row that was asked for."""
        found = self.cleaned_data
        return {
            **{name: found[name] for name in FIELDS if name in found},
            "project_id": found["project"].id if found["project"] else None,
            "conditions": found["conditions"] or {},
            "escalation": found["escalation"] or [],
        }

    def _check_escalation(self, cleaned: dict[str, Any]) -> None:
        steps = cleaned.get("escalation") or []
        problems = problems_of(steps, cleaned.get("expires_minutes") or 0)
        if not problems:
            problems = [*_unknown_people(steps), *_unknown_groups(steps, cleaned.get("project"))]
        for problem in problems:
            self.add_error("escalation", problem)

    def _check_whom(self, cleaned: dict[str, Any]) -> None:
        project = cleaned.get("project")
        for group in self.chosen_groups:
            if project and group.project_id != project.id:
                self.add_error("groups", f"{group.name} is a group of another project.")
        people, others = cleaned.get("people") or (), cleaned.get("roles") or cleaned.get("groups")
        if people and not others and len(people) < (cleaned.get("required") or 1):
            self.add_error("people", "Fewer people are named than are required.")


def _unknown_people(steps: list[dict[str, Any]]) -> list[str]:
    named = {name for step in steps for name in step.get("people", [])}
    known = get_user_model().objects.filter(username__in=named).values_list("username", flat=True)
    return [f"There is no user {name!r}." for name in sorted(named - set(known))]


def _unknown_groups(steps: list[dict[str, Any]], project: Any) -> list[str]:
    named = {name for step in steps for name in step.get("groups", [])}
    known = ApproverGroup.objects.filter(name__in=named)
    if project:
        known = known.filter(project=project)
    missing = named - set(known.values_list("name", flat=True))
    return [f"There is no group {name!r}." for name in sorted(missing)]

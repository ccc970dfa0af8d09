"""Forms about sharing the work."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth import get_user_model

from runtime_core.access import visible_projects
from runtime_core.values import Risk


class DelegationForm(forms.Form):
    """Somebody to stand in for the one who fills it in."""

    project = forms.ModelChoiceField(queryset=None, empty_label=None)
    delegate = forms.ModelChoiceField(
        queryset=None, to_field_name="username", label="Who stands in", empty_label=None
    )
    until = forms.DateField(
        label="Until the end of (UTC)", widget=forms.DateInput(attrs={"type": "date"})
    )
    tool = forms.CharField(max_length=100, required=False, label="Only for the tool")
    max_risk = forms.ChoiceField(
        choices=[(risk.value, risk.value) for risk in reversed(Risk)], label="Up to the risk"
    )

    def __init__(self, *args: Any, user: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        projects = visible_projects(user)
        self.fields["project"].queryset = projects
        people = get_user_model().objects.filter(is_active=True, memberships__project__in=projects)
        self.fields["delegate"].queryset = (
            people.exclude(pk=user.pk).distinct().order_by("username")
        )


class ViewForm(forms.Form):
    """A view of the inbox under a name."""

    name = forms.CharField(max_length=60)
    query = forms.CharField(
        max_length=300, required=False, label="Shows", help_text="The address after the ?."
    )
    project = forms.ModelChoiceField(
        queryset=None, required=False, label="For the people of", empty_label="only me"
    )
    is_default = forms.BooleanField(required=False, label="My inbox opens with it")

    def __init__(self, *args: Any, user: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.fields["project"].queryset = visible_projects(user)

"""What the admin's pages share: looking without touching, and changes that reach the audit."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from runtime_core import ports
from runtime_core.models import ToolPermission
from runtime_core.models.kept import of_kept
from runtime_core.tools.permission import validate_constraints
from runtime_core.values import Actor, Audit, Json, Verdict


class LookOnly(admin.ModelAdmin):  # type: ignore[type-arg]  # not generic at run time
    """Rows that other parts of the product write: no adding, changing, deleting, and no actions."""

    actions = None

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """All rows but those of what is being deleted."""
        return of_kept(super().get_queryset(request))

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody adds."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody changes."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody deletes."""
        return False


class PermissionForm(forms.ModelForm):  # type: ignore[type-arg]
    """A permission whose constraints can be evaluated."""

    class Meta:
        model = ToolPermission
        fields = ["agent", "tool", "verdict", "constraints", "note"]

    def clean(self) -> dict[str, Any] | None:
        """Refuse constraints that no call could ever be checked against."""
        cleaned = super().clean()
        found = self.cleaned_data
        constraints, verdict = found.get("constraints"), found.get("verdict")
        if verdict and constraints is not None:
            for problem in validate_constraints(constraints, Verdict(verdict)):
                self.add_error("constraints", problem)
        return cleaned


def actor_of(request: HttpRequest) -> Actor:
    """The person in the admin."""
    user = request.user
    assert user.pk is not None  # noqa: S101 (the admin has no nameless visitors)
    superuser = bool(getattr(user, "is_superuser", False))
    return Actor(user.pk, user.get_username(), via="admin", superuser=superuser)


def shown(row: Any, fields: tuple[str, ...]) -> dict[str, Json]:
    """The fields of a row as the audit keeps them."""
    return {name: _plain(getattr(row, name)) for name in fields}


def record_change(
    request: HttpRequest,
    row: Any,
    before: dict[str, Json] | None,
    after: dict[str, Json] | None,
    project_id: Any,
    action: str = "permission.changed",
) -> None:
    """Write down a change in the transaction that makes it; None stands for "not there"."""
    ports.audit().record(
        [
            Audit(
                action=action,
                actor=actor_of(request),
                object_type=row._meta.model_name,
                object_id=str(row.pk),
                project_id=project_id,
                data={"before": before, "after": after},
            )
        ]
    )


def _plain(value: Any) -> Json:
    if value is None or isinstance(value, str | int | bool | dict | list):
        return value
    return str(value)

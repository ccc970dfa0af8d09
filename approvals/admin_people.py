"""Delegations and remembered approvals in the admin."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from approvals import grants
from approvals.models import Delegation, Grant
from approvals.people import delegation
from runtime_core.admin_forms import LookOnly, actor_of
from runtime_core.errors import InvalidInput


class DelegationForm(forms.ModelForm):
    """A delegation that could also be made on the page."""

    class Meta:
        model = Delegation
        fields = ["project", "delegator", "delegate", "tool", "max_risk", "starts_at", "ends_at"]

    def clean(self) -> dict[str, Any] | None:
        """The same rules as everywhere."""
        cleaned = super().clean()
        given = self.cleaned_data
        if not self.errors:
            try:
                delegation.check(
                    given["project"], given["delegator"], given["delegate"], self.wish()
                )
            except InvalidInput as error:
                self.add_error(error.data["field"], error.message)
        return cleaned

    def wish(self) -> delegation.Wish:
        """What the form asks for."""
        given = self.cleaned_data
        return delegation.Wish(
            ends_at=given["ends_at"],
            starts_at=given["starts_at"],
            tool=given["tool"],
            max_risk=given["max_risk"],
        )


@admin.register(Delegation)
class DelegationAdmin(admin.ModelAdmin):
    """Who stands in for whom. Made and ended, never changed into another."""

    form = DelegationForm
    list_display = [
        "delegator", "delegate", "project", "tool", "max_risk", "starts_at", "ends_at", "revoked_at",
    ]  # fmt: skip
    list_filter = ["project"]
    list_select_related = ["delegator", "delegate", "project"]
    autocomplete_fields = ["project", "delegator", "delegate"]
    actions = ["revoke"]

    def has_change_permission(self, request: HttpRequest, obj: Delegation | None = None) -> bool:
        """Only actions change one."""
        return obj is None and super().has_change_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: Delegation | None = None) -> bool:
        """Ended ones stay, so that the audit can name them."""
        return False

    def save_model(self, request: HttpRequest, obj: Delegation, form: Any, change: bool) -> None:
        """Make it as everybody else does; an admin acts for the project."""
        made = delegation.make(
            actor_of(request), request.user, obj.project, obj.delegator, obj.delegate, form.wish()
        )
        obj.pk, obj._state.adding = made.pk, False

    @admin.action(description="End the chosen delegations", permissions=["change"])
    def revoke(self, request: HttpRequest, rows: QuerySet[Delegation]) -> None:
        """End them now."""
        for row in rows.filter(revoked_at=None):
            delegation.end(actor_of(request), row)
        self.message_user(request, "The delegations are over.", messages.SUCCESS)


@admin.register(Grant)
class GrantAdmin(LookOnly):
    """Remembered approvals; the next call after the end of one is asked about again."""

    list_display = [
        "tool", "scope", "project", "grantor", "uses", "max_uses", "expires_at", "revoked_at",
    ]  # fmt: skip
    list_filter = ["project", "scope"]
    list_select_related = ["project", "grantor"]
    search_fields = ["tool", "grantor__username"]
    exclude = ["args_digest", "conditions"]
    show_full_result_count = False
    actions = ["revoke"]

    @admin.action(description="End the chosen remembered approvals", permissions=["view"])
    def revoke(self, request: HttpRequest, rows: QuerySet[Grant]) -> None:
        """End them now."""
        if not request.user.has_perm("approvals.change_grant"):
            self.message_user(request, "You may look at them only.", messages.ERROR)
            return
        for row in rows.select_related("interrupt"):
            grants.end(actor_of(request), row)
        self.message_user(request, "The remembered approvals are over.", messages.SUCCESS)

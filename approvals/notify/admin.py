"""Endpoints and deliveries in the admin: addresses to change, what was given up to send again."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from approvals.notify.forms import EndpointForm
from approvals.notify.models import Delivery, Endpoint, Status
from approvals.notify.send import send_again
from runtime_core.admin import Recorded
from runtime_core.admin_forms import LookOnly, record_change


@admin.register(Endpoint)
class EndpointAdmin(Recorded):
    """Where other systems are told. The signing key is shown once, in the answer to the form."""

    form = EndpointForm
    list_display = ["name", "project", "channel", "host", "min_risk", "owner", "is_active"]
    list_filter = ["project", "channel", "is_active"]
    autocomplete_fields = ["project", "owner"]
    fields = ["project", "owner", "name", "channel", "address", "min_risk", "is_active"]
    recorded_fields = ("name", "channel", "host", "min_risk", "owner_id", "is_active")

    def save_form(self, request: HttpRequest, form: Any, change: bool) -> Any:
        """Keep a new signing key for this one answer."""
        made = super().save_form(request, form, change)
        request.new_secret = form.new_secret  # type: ignore[attr-defined]
        return made

    def response_add(
        self, request: HttpRequest, obj: Endpoint, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Show the signing key, if there is a new one: a message would be stored in a cookie."""
        return self._secret(request, obj) or super().response_add(request, obj, post_url_continue)

    def response_change(self, request: HttpRequest, obj: Endpoint) -> HttpResponse:
        """The same, where a Slack address was made a webhook."""
        return self._secret(request, obj) or super().response_change(request, obj)

    def _secret(self, request: HttpRequest, obj: Endpoint) -> HttpResponse | None:
        secret = getattr(request, "new_secret", "")
        if not secret:
            return None
        context = {
            **self.admin_site.each_context(request),
            "title": "Endpoint stored",
            "secret": secret,
            "row": obj,
            "opts": self.opts,
        }
        answer = TemplateResponse(request, "admin/endpoint_stored.html", context)
        answer["Cache-Control"] = "no-store"
        return answer


@admin.register(Delivery)
class DeliveryAdmin(LookOnly):
    """What was sent to whom; what was given up can be sent again, with the same event id."""

    list_display = [
        "created_at", "channel", "status", "target", "attempts", "last_error", "due_at", "sent_at",
    ]  # fmt: skip
    list_filter = ["status", "channel"]
    list_select_related = ["person", "endpoint"]
    show_full_result_count = False
    actions = ["send_chosen_again"]

    @admin.display(description="To")
    def target(self, row: Delivery) -> str:
        """The person or the system."""
        return str(row.endpoint or row.person)

    @admin.action(description="Send again what was given up", permissions=["view"])
    def send_chosen_again(self, request: HttpRequest, rows: QuerySet[Delivery]) -> None:
        """Give dead deliveries new attempts, each on the record."""
        if not request.user.has_perm("approvals.change_delivery"):
            self.message_user(request, "You may look at deliveries only.", messages.ERROR)
            return
        sent = 0
        for row in rows.filter(status=Status.DEAD).select_related("notice__interrupt"):
            if send_again(row):
                project = row.notice.interrupt.project_id
                before, after = {"status": "dead"}, {"status": "pending"}
                record_change(request, row, before, after, project, "notification.resent")
                sent += 1
        self.message_user(request, f"{sent} deliveries will be tried again.", messages.SUCCESS)

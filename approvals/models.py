"""What people decided, and who was shown what: rows that are only ever added."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from approvals.notify.models import ChannelChoice, Delivery, Endpoint, Notice, QuietTime
from runtime_core.ids import new_id
from runtime_core.models import Interrupt

# Models of rooms that keep theirs beside their code.
__all__ = ["ChannelChoice", "Decision", "Delivery", "Endpoint", "Notice", "QuietTime", "Viewing"]


class Decision(models.Model):
    """One decision that counted, bound to what was shown: `version` and `digest` of the interrupt.

    `payload_digest` covers the whole request, so that the same person's repeat can be told from a
    second opinion.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    interrupt = models.ForeignKey(Interrupt, models.CASCADE, related_name="decisions")
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="decisions"
    )
    actor_name = models.CharField(max_length=150, help_text="Outlives the account.")
    via = models.CharField(max_length=10, help_text="web, api or cli.")
    action = models.CharField(max_length=8)
    version = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)
    payload_digest = models.CharField(max_length=64)
    comment = models.TextField(blank=True, help_text="Redacted.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "decision"
        ordering = ["created_at", "id"]
        constraints = [
            # A quorum lifts the first and keeps the second.
            models.UniqueConstraint(fields=["interrupt"], name="decision_one_an_interrupt"),
            models.UniqueConstraint(
                fields=["interrupt", "version", "actor"], name="decision_one_a_person_and_version"
            ),
            models.CheckConstraint(
                condition=models.Q(action__in=["approve", "edit", "respond", "reject"]),
                name="decision_action_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.action} by {self.actor_name}"


class Viewing(models.Model):
    """That a person was shown the raw arguments of one version: what keeps the audit at one entry
    for each.
    """

    interrupt = models.ForeignKey(Interrupt, models.CASCADE, related_name="viewings")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    version = models.PositiveIntegerField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "interrupt_viewing"
        constraints = [
            models.UniqueConstraint(
                fields=["interrupt", "user", "version"], name="viewing_once_a_version"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} saw version {self.version} of {self.interrupt_id}"

"""What people decided, and who was shown what: rows that are only ever added."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from runtime_core.ids import new_id
from runtime_core.models import Interrupt
from runtime_core.models.sealed import SealedField

VOTES = ("approve", "edit", "respond", "reject")


class Decision(models.Model):
    """One thing that somebody decided, bound to the `version` and `digest` of the interrupt on which it
    counts. A vote counts towards the outcome of its own version alone.

    `payload_digest` covers the whole request, so that the same person's repeat can be told from a
    second opinion.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    interrupt = models.ForeignKey(Interrupt, models.CASCADE, related_name="decisions")
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="decisions"
    )
    actor_name = models.CharField(max_length=150, help_text="Outlives the account.")
    seat = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        related_name="+",
        help_text="Whose seat the vote fills: the actor's own, unless somebody stands in for another.",
    )
    via = models.CharField(max_length=10, help_text="web, api, machine or cli.")
    overridden = models.BooleanField(
        db_default=False, default=False, help_text="A superuser decided past the policy."
    )
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
            models.UniqueConstraint(
                fields=["interrupt", "version", "actor"],
                condition=models.Q(action__in=VOTES),
                name="decision_one_a_person_and_version",
            ),
            models.UniqueConstraint(
                fields=["interrupt", "version", "seat"],
                condition=models.Q(action__in=VOTES),
                name="decision_one_a_seat_and_version",
            ),
            models.CheckConstraint(
                condition=models.Q(action__in=[*VOTES, "propose", "undo"]),
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


class Revision(models.Model):
    """One version of an interrupt: what stood to decide on, and by whom it became so.

    `args_text` is the exact text, sealed, and never rendered to somebody who may not decide.
    """

    interrupt = models.ForeignKey(Interrupt, models.CASCADE, related_name="revisions")
    version = models.PositiveIntegerField()
    cause = models.CharField(max_length=10)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    actor_name = models.CharField(max_length=150, blank=True)
    editor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        related_name="+",
        help_text="Who wrote these arguments, if the model did not.",
    )
    is_edited = models.BooleanField(default=False)
    digest = models.CharField(max_length=64)
    args_text = SealedField(identity=("interrupt_id", "version"))
    args_redacted = models.JSONField()
    comment = models.TextField(blank=True, help_text="Redacted.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "interrupt_revision"
        ordering = ["version"]
        constraints = [
            models.UniqueConstraint(
                fields=["interrupt", "version"], name="revision_once_a_version"
            ),
            models.CheckConstraint(
                condition=models.Q(cause__in=["asked", "edited", "proposed", "undone", "policy"]),
                name="revision_cause_known",
            ),
        ]

    def __str__(self) -> str:
        return f"version {self.version} of {self.interrupt_id}"

"""Deletions: what was asked for, how far it is, and what it left behind: counts and a receipt."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from runtime_core.ids import new_id


class DeletionRequest(models.Model):
    """One deletion. Of what was deleted only ids stay, and those of the runs only until their rows are gone."""

    class Kind(models.TextChoices):
        """What is deleted."""

        RUN = "run", "One run"
        THREAD = "thread", "One thread"
        USER = "user", "All of one person"

    class State(models.TextChoices):
        """How far it is: hidden, or gone from every table."""

        PENDING = "pending", "Being deleted"
        DONE = "done", "Deleted"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    kind = models.CharField(max_length=6, choices=Kind)
    object_id = models.CharField("id", max_length=36)
    project_id = models.UUIDField(null=True, help_text="Null: all projects, with kind user.")
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    reason = models.CharField(max_length=300, blank=True, help_text="Redacted.")
    state = models.CharField(max_length=7, choices=State, default=State.PENDING)
    run_count = models.PositiveIntegerField(default=0, help_text="With all that derive from them.")
    runs = ArrayField(models.UUIDField(), default=list, help_text="Whose rows are still to go.")
    threads = ArrayField(models.UUIDField(), default=list, help_text="Those that go as a whole.")
    counts = models.JSONField(default=dict, help_text="Rows deleted, by table.")
    receipt = models.CharField(
        max_length=64, blank=True, help_text="SHA-256 over what the audit says of it."
    )
    created_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "deletion_request"
        ordering = ["-created_at"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(kind__in=["run", "thread", "user"]), name="deletion_kind_known"
            ),
            models.CheckConstraint(
                condition=models.Q(state="pending", ended_at=None, receipt="")
                | (
                    models.Q(state="done", ended_at__isnull=False, runs=[], threads=[])
                    & ~models.Q(receipt="")
                ),
                name="deletion_ends_whole",
            ),
        ]
        indexes = [
            models.Index(
                fields=["created_at"], condition=models.Q(state="pending"), name="deletion_to_do"
            ),
        ]

    def __str__(self) -> str:
        return f"deletion of {self.kind} {self.object_id}"

"""Legal holds: what must be kept, whatever its retention says and whoever asks for its deletion."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from runtime_core.ids import new_id


class LegalHold(models.Model):
    """Keeps a run, a thread, what a user started or a project, with all that works for it, until it is released."""

    class Kind(models.TextChoices):
        """What is held."""

        RUN = "run", "One run"
        THREAD = "thread", "One thread"
        USER = "user", "All that one person started"
        PROJECT = "project", "One project"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    kind = models.CharField(max_length=8, choices=Kind)
    object_id = models.CharField(
        "id", max_length=36, help_text="Of the run, thread or project; of a user, the number."
    )
    reason = models.CharField(max_length=300, help_text="Who asked for it, and for what.")
    set_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False, related_name="+"
    )
    set_at = models.DateTimeField(db_default=Now(), editable=False)
    released_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False, related_name="+"
    )
    released_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        db_table = "legal_hold"
        ordering = ["-set_at"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(kind__in=["run", "thread", "user", "project"])
                & ~models.Q(object_id="")
                & ~models.Q(reason=""),
                name="legal_hold_whole",
            ),
        ]
        indexes = [
            models.Index(
                fields=["kind", "object_id"],
                condition=models.Q(released_at__isnull=True),
                name="legal_hold_in_force",
            ),
        ]

    def __str__(self) -> str:
        return f"hold on {self.kind} {self.object_id}"

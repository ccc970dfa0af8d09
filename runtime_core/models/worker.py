"""Worker processes, as they said of themselves: who holds leases, and since when one is missing."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class Worker(models.Model):
    """One worker process. While it lives, a session of its own holds an advisory lock with this row's id."""

    name = models.CharField(max_length=120, unique=True)
    slots = models.PositiveIntegerField(help_text="How many runs it drives at once.")
    started_at = models.DateTimeField(db_default=Now())
    seen_at = models.DateTimeField(db_default=Now())
    missing_since = models.DateTimeField(
        null=True, help_text="When the reconciler first found its lock free."
    )
    stopped_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "worker"

    def __str__(self) -> str:
        return self.name

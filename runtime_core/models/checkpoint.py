"""Checkpoints: from where a run may safely go on."""

from __future__ import annotations

from django.db import models

from runtime_core.ids import new_id
from runtime_core.models.checks import never_negative
from runtime_core.models.run import Run
from runtime_core.models.sealed import SealedField


class Checkpoint(models.Model):
    """A point of a run: a few counters, and how far into its messages it reaches; never a copy of them.

    `digest` is the rolling SHA-256 over the run's messages up to `messages`, then the state.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    run = models.ForeignKey(Run, models.CASCADE, related_name="checkpoints", db_index=False)
    step = models.IntegerField()
    epoch = models.BigIntegerField()
    reason = models.CharField(max_length=20)
    schema_version = models.SmallIntegerField()
    messages = models.IntegerField(help_text="How many messages of the run it covers.")
    state = SealedField(as_json=True)
    digest = models.CharField(max_length=64)
    pinned = models.BooleanField(
        default=False, db_default=False, help_text="Housekeeping leaves it alone."
    )
    created_at = models.DateTimeField(db_default=models.functions.Now())

    class Meta:
        db_table = "checkpoint"
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(
                condition=never_negative("step", "epoch", "schema_version", "messages"),
                name="checkpoint_counts",
            ),
        ]
        indexes = [models.Index(fields=["run", "epoch", "id"], name="checkpoint_in_order")]

    def __str__(self) -> str:
        return f"checkpoint at step {self.step} of {self.run_id}"

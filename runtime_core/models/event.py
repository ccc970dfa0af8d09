"""Events: what a run emits while it goes, in one dense sequence."""

from __future__ import annotations

from django.db import models

from runtime_core.models.checks import OneOf
from runtime_core.models.run import Run

TYPES = (
    "run_status",
    "step_start",
    "text_delta",
    "tool_call_start",
    "tool_call_result",
    "progress",
    "checkpoint",
    "interrupt",
    "error",
    "done",
)


class Event(models.Model):
    """One event, redacted. `(run, seq)` is 1, 2, 3 … without gap, in the order of the commits."""

    pk = models.CompositePrimaryKey("run_id", "seq")
    run = models.ForeignKey(Run, models.CASCADE, related_name="events", db_index=False)
    seq = models.BigIntegerField()
    type = models.CharField(max_length=16)
    ts = models.DateTimeField(db_default=models.functions.Now())
    step = models.PositiveIntegerField(null=True)
    data = models.JSONField()

    class Meta:
        db_table = "event"
        constraints = [
            models.CheckConstraint(condition=OneOf("type", TYPES), name="event_type_known"),
            models.CheckConstraint(condition=models.Q(seq__gt=0), name="event_seq_from_one"),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.seq} of {self.run_id}"

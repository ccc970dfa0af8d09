"""The ledger: every tool call that a model proposed and what became of it."""

from __future__ import annotations

from django.db import models

from runtime_core.ids import new_id
from runtime_core.models.run import Run
from runtime_core.models.sealed import SealedField
from runtime_core.states import CallStatus


class ToolCall(models.Model):
    """One call. `args_text` and `result_text` are the raw texts, sealed; the redacted copies are shown."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    run = models.ForeignKey(Run, models.CASCADE, related_name="tool_calls")
    step = models.PositiveIntegerField(help_text="Index of the model step that proposed it.")
    position = models.PositiveSmallIntegerField()
    call_id = models.CharField(max_length=200)
    tool = models.CharField(max_length=100)
    effect = models.CharField(max_length=14)
    risk = models.CharField(max_length=8)
    status = models.CharField(max_length=18)
    args_text = SealedField()
    args_digest = models.CharField(max_length=64)
    args_redacted = models.JSONField()
    schema_digest = models.CharField(max_length=64)
    idempotency_key = models.CharField(max_length=64, unique=True)
    verdict_reason = models.CharField(max_length=300, blank=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    epoch = models.PositiveBigIntegerField(default=0)
    error_code = models.CharField(max_length=60, blank=True)
    # Null: it has not ended; an empty text is a result.
    result_text = SealedField(null=True)
    result_redacted = models.JSONField(null=True)
    truncated = models.BooleanField(default=False)
    edited = models.BooleanField(default=False)
    created_at = models.DateTimeField(db_default=models.functions.Now())
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "tool_call"
        ordering = ["step", "position"]
        constraints = [
            models.UniqueConstraint(
                fields=["run", "step", "position"], name="tool_call_place_once"
            ),
            models.CheckConstraint(
                condition=models.Q(status__in=[s.value for s in CallStatus]),
                name="tool_call_status_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tool} in {self.run_id}"

"""The ledger: every tool call that a model proposed and what became of it."""

from __future__ import annotations

from django.db import models

from runtime_core.ids import new_id
from runtime_core.models.checks import OneOf
from runtime_core.models.run import Run
from runtime_core.models.sealed import SealedField
from runtime_core.states import CallStatus

_NOT_DONE = sorted(s.value for s in (CallStatus.FAILED, CallStatus.REJECTED, CallStatus.CANCELLED))


class ToolCall(models.Model):
    """One call. `args_text` and `result_text` are the raw texts, sealed; the redacted copies are shown."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    # The unique place begins with the run: no index of its own.
    run = models.ForeignKey(Run, models.CASCADE, related_name="tool_calls", db_index=False)
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
    # No key twice, by the constraint `tool_call_key_once` of a migration: its index holds hashes, a fifth of the keys.
    idempotency_key = models.CharField(max_length=64)
    verdict_reason = models.CharField(max_length=300, blank=True)
    grant_id = models.UUIDField(null=True, help_text="The remembered approval that lets it run.")
    attempts = models.PositiveSmallIntegerField(default=0)
    epoch = models.PositiveBigIntegerField(default=0)
    error_code = models.CharField(max_length=60, blank=True)
    # Null: it has not ended; an empty text is a result.
    result_text = SealedField(null=True)
    result_redacted = models.JSONField(null=True)
    truncated = models.BooleanField(default=False)
    edited = models.BooleanField(default=False)
    worker = models.CharField(
        max_length=120,
        blank=True,
        default="",
        db_default="",
        help_text="Who began it last; kept where it must not happen twice.",
    )
    undoes = models.ForeignKey(
        "self",
        models.CASCADE,
        null=True,
        related_name="undone_by",
        db_index=False,
        help_text="The call whose effect this one takes back.",
    )
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
            # One that failed for sure may be tried again, as another row.
            models.UniqueConstraint(
                fields=["undoes"],
                condition=models.Q(undoes__isnull=False) & ~models.Q(status__in=_NOT_DONE),
                name="tool_call_undone_once",
            ),
            models.CheckConstraint(
                condition=OneOf("status", [s.value for s in CallStatus]),
                name="tool_call_status_known",
            ),
        ]

        indexes = [
            models.Index(
                fields=["undoes"],
                condition=models.Q(undoes__isnull=False),
                name="tool_call_takes_back",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tool} in {self.run_id}"

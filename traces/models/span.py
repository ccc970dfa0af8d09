"""Spans: what took how long in a run; inputs and outputs stand apart, so lists stay light."""

from __future__ import annotations

from django.db import models

STATUSES = ("open", "ok", "error", "cancelled", "abandoned")


class SpanRow(models.Model):
    """One timed thing of a run, redacted; written when it starts and again when it ends.

    No foreign key to the run: a span may arrive before the run's own commit, and must
    never hold it up.
    """

    id = models.UUIDField(primary_key=True, editable=False)
    run_id = models.UUIDField()
    parent_id = models.UUIDField(null=True)
    kind = models.CharField(max_length=16)
    name = models.CharField(max_length=200)
    status = models.CharField(max_length=10)
    epoch = models.PositiveBigIntegerField(default=0)
    step = models.PositiveIntegerField(null=True)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    input_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)
    cost_microusd = models.PositiveBigIntegerField(default=0)
    attrs = models.JSONField(default=dict)
    redactions = models.JSONField(
        default=dict, help_text="How many values of each class were taken out."
    )

    class Meta:
        db_table = "span"
        ordering = ["started_at", "id"]
        verbose_name = "span"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(status__in=STATUSES), name="span_status_known"
            ),
        ]
        indexes = [
            models.Index(fields=["run_id", "started_at", "id"], name="span_of_run"),
            models.Index(
                fields=["run_id"], condition=models.Q(ended_at__isnull=True), name="span_open"
            ),
            models.Index(
                fields=["-started_at"], condition=models.Q(status="error"), name="span_error"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class SpanPayload(models.Model):
    """The redacted input or output of one span, as JSON text in the order it came in."""

    pk = models.CompositePrimaryKey("span_id", "part")
    span = models.ForeignKey(SpanRow, models.CASCADE, related_name="payloads", db_index=False)
    part = models.CharField(max_length=8)
    body = models.TextField()
    truncated = models.BooleanField(default=False)

    class Meta:
        db_table = "span_payload"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(part__in=["input", "output"]), name="span_payload_part_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.part} of {self.span_id}"

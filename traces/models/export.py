"""Exports: jobs that write traces into a file, which can be fetched for a day."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from runtime_core.ids import new_id


class ExportJob(models.Model):
    """One asked-for file of a project's spans, from the asking to the day its file is gone."""

    class Format(models.TextChoices):
        """What the file is."""

        JSONL = "jsonl", "JSON, one span a line"
        CSV = "csv", "CSV, for a spreadsheet"
        OTLP = "otlp", "OTLP/JSON, one trace part a line"

    class State(models.TextChoices):
        """How far it is."""

        PENDING = "pending", "Waits"
        WORKING = "working", "Being written"
        READY = "ready", "Ready"
        FAILED = "failed", "Failed"
        EXPIRED = "expired", "Gone"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    project = models.ForeignKey("runtime_core.Project", models.CASCADE, related_name="+")
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    format = models.CharField(max_length=5, choices=Format)
    reason = models.CharField(max_length=300, help_text="Redacted.")
    run_id = models.UUIDField(null=True, help_text="Only this run; null: all.")
    since = models.DateTimeField(null=True)
    until = models.DateTimeField(null=True)
    row_cap = models.PositiveIntegerField(help_text="As the role allowed when it was asked for.")
    state = models.CharField(max_length=8, choices=State, default=State.PENDING)
    attempts = models.PositiveSmallIntegerField(default=0)
    claimed_at = models.DateTimeField(null=True)
    rows = models.PositiveIntegerField(default=0)
    size = models.PositiveBigIntegerField(default=0)
    sha256 = models.CharField(max_length=64, blank=True)
    is_cut = models.BooleanField(default=False, help_text="There was more than the row cap.")
    policy_version = models.PositiveIntegerField(null=True)
    link_digest = models.CharField(
        max_length=64, blank=True, help_text="Of the one link that opens the file, until it has."
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "export_job"
        ordering = ["-created_at", "-id"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(format__in=["jsonl", "csv", "otlp"]), name="export_format_known"
            ),
            models.CheckConstraint(
                condition=models.Q(state__in=["pending", "working", "failed", "expired"])
                | models.Q(state="ready", expires_at__isnull=False) & ~models.Q(sha256=""),
                name="export_ready_whole",
            ),
            models.CheckConstraint(condition=~models.Q(reason=""), name="export_has_reason"),
        ]
        indexes = [
            models.Index(fields=["requested_by", "-created_at"], name="export_of_person"),
            models.Index(
                fields=["created_at"],
                condition=models.Q(state__in=["pending", "working", "ready"]),
                name="export_to_do",
            ),
        ]

    def __str__(self) -> str:
        return f"export {self.id} ({self.format})"

    @property
    def file_name(self) -> str:
        """What the file is called for who fetches it."""
        ending = "otlp.jsonl" if self.format == self.Format.OTLP else self.format
        return f"interlock-{self.id}.{ending}"

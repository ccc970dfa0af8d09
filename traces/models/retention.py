"""How long each class of data is kept, and what the sweeps have done."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models.functions import Now

from runtime_core.ids import new_id

MOST_DAYS = 36_500


class DataClass(models.TextChoices):
    """What is kept for a time of its own, counted from the end of its run; audit entries have no end but their own."""

    EVENTS = "events", "Streamed pieces of text and progress"
    SPAN_PAYLOADS = "span_payloads", "What went in and out of spans"
    SPANS = "spans", "Spans"
    CHECKPOINTS = "checkpoints", "Checkpoints"
    RUN_STATE = "run_state", "Threads with their runs and all that is theirs"
    AUDIT_PAYLOADS = "audit_payloads", "Details of audit entries"


class RetentionPolicy(models.Model):
    """How long one class of data is kept; the most specific policy wins, of equal ones the shorter."""

    class Scope(models.TextChoices):
        """What it holds for."""

        GLOBAL = "global", "Everything"
        PROJECT = "project", "One project"
        AGENT = "agent", "One agent"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    data_class = models.CharField(max_length=16, choices=DataClass)
    scope = models.CharField(max_length=8, choices=Scope, default=Scope.GLOBAL)
    project = models.ForeignKey(
        "runtime_core.Project", models.CASCADE, null=True, blank=True, related_name="+"
    )
    agent = models.ForeignKey(
        "runtime_core.Agent", models.CASCADE, null=True, blank=True, related_name="+"
    )
    days = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="After the end of its run; 0: with the next sweep; empty: for ever.",
    )
    note = models.CharField(max_length=200, blank=True, help_text="Why it is there.")
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "retention_policy"
        ordering = ["data_class", "scope", "id"]
        verbose_name_plural = "retention policies"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(data_class__in=DataClass.values),
                name="retention_policy_class_known",
            ),
            models.CheckConstraint(
                condition=models.Q(scope="global", project=None, agent=None)
                | models.Q(scope="project", project__isnull=False, agent=None)
                | models.Q(scope="agent", project=None, agent__isnull=False),
                name="retention_policy_scope_named",
            ),
            models.CheckConstraint(
                condition=models.Q(days__isnull=True) | models.Q(days__lte=MOST_DAYS),
                name="retention_policy_days_bounded",
            ),
        ]

    def __str__(self) -> str:
        kept = "for ever" if self.days is None else f"{self.days} days"
        return f"{self.get_data_class_display()}: {kept}"

    def clean(self) -> None:
        """Refuse a scope that names the wrong thing, and more days than anybody means."""
        for field in ("project", "agent"):
            value = getattr(self, f"{field}_id")
            if field == self.scope and not value:
                raise ValidationError({field: f"With scope {self.scope}, name the {field}."})
            if field != self.scope and value:
                raise ValidationError({field: f"With scope {self.scope}, leave this empty."})
        if self.data_class == DataClass.AUDIT_PAYLOADS and self.agent_id:
            raise ValidationError({"scope": "The audit is kept for everything or for a project."})
        if self.days is not None and self.days > MOST_DAYS:
            raise ValidationError({"days": f"At most {MOST_DAYS}; leave it empty for ever."})


class RetentionTotal(models.Model):
    """What the sweeps have let go of in one class, for those who watch."""

    data_class = models.CharField(max_length=16, primary_key=True, choices=DataClass)
    rows = models.PositiveBigIntegerField(default=0, help_text="In all sweeps together.")
    last_rows = models.PositiveBigIntegerField(default=0)
    last_at = models.DateTimeField(db_default=Now())
    longest_ms = models.PositiveIntegerField(
        default=0, help_text="The longest transaction of the last sweep."
    )

    class Meta:
        db_table = "retention_total"

    def __str__(self) -> str:
        return f"{self.data_class}: {self.rows}"

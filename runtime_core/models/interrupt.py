"""Interrupts: durable pauses that wait for a person."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from runtime_core.ids import new_id
from runtime_core.models.kept import Kept
from runtime_core.models.project import Project
from runtime_core.models.run import Run
from runtime_core.models.tool_call import ToolCall
from runtime_core.states import InterruptKind, InterruptStatus


class Interrupt(models.Model):
    """One question to the people of a project. What they decide on is bound by `version` and `digest`."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="interrupts")
    run = models.ForeignKey(Run, models.CASCADE, related_name="interrupts")
    tool_call = models.ForeignKey(ToolCall, models.CASCADE, related_name="interrupts")
    kind = models.CharField(max_length=16)
    status = models.CharField(max_length=10, default=InterruptStatus.OPEN.value)
    version = models.PositiveIntegerField(default=1)
    digest = models.CharField(max_length=64)
    risk = models.CharField(max_length=8)
    risk_order = models.GeneratedField(
        expression=models.Case(
            *(
                models.When(risk=risk, then=models.Value(place))
                for place, risk in enumerate(("critical", "high", "medium"))
            ),
            default=models.Value(3),
        ),
        output_field=models.SmallIntegerField(),
        db_persist=True,
        help_text="The risk as a number to sort by, the highest first.",
    )
    reason = models.CharField(max_length=300, help_text="Why a person is asked.")
    required = models.PositiveSmallIntegerField(default=1)
    policy = models.UUIDField(
        null=True, help_text="The version of the approval policy that applies; null: the defaults."
    )
    terms = models.JSONField(
        default=dict, help_text="Under which terms people decide, as the side that decides has it."
    )
    requester_may = models.BooleanField(
        db_default=True, help_text="Whether the one who asked for the run may decide."
    )
    changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        related_name="+",
        help_text="Who changed the arguments into those of this version.",
    )
    bound = models.JSONField(
        default=dict, help_text="What tool, agent and workspace were when it was asked."
    )
    detail = models.JSONField(default=dict, help_text="Redacted facts for the page, by kind.")
    created_at = models.DateTimeField(db_default=models.functions.Now())
    expires_at = models.DateTimeField()
    decided_at = models.DateTimeField(null=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    undo_until = models.DateTimeField(
        null=True, help_text="Until when the decision may be taken back; it has no effect before."
    )
    action = models.CharField(max_length=8, blank=True)
    comment = models.TextField(blank=True, help_text="Redacted reason or answer.")
    deleted_at = models.DateTimeField(
        null=True, editable=False, help_text="Since then nobody sees it; it is being deleted."
    )

    objects = Kept["Interrupt"]()
    everything = models.Manager["Interrupt"]()

    class Meta:
        db_table = "interrupt"
        ordering = ["expires_at", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["tool_call"], condition=models.Q(status="open"), name="interrupt_one_open"
            ),
            models.CheckConstraint(
                condition=models.Q(status__in=[s.value for s in InterruptStatus]),
                name="interrupt_status_known",
            ),
            models.CheckConstraint(
                condition=models.Q(kind__in=[k.value for k in InterruptKind]),
                name="interrupt_kind_known",
            ),
            models.CheckConstraint(
                condition=models.Q(status="open", decided_at__isnull=True)
                | (~models.Q(status="open") & models.Q(decided_at__isnull=False)),
                name="interrupt_settled_has_a_time",
            ),
        ]
        indexes = [
            models.Index(
                fields=["project", "expires_at", "id"],
                condition=models.Q(status="open"),
                name="interrupt_open",
            ),
            models.Index(fields=["run"], name="interrupt_of_run"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} for {self.run_id}"

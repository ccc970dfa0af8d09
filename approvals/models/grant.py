"""Remembered approvals: what somebody allowed for later, exactly how far, and each use of it."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from runtime_core.ids import new_id
from runtime_core.models import Agent, Interrupt, Project, Run, Thread


class Scope(models.TextChoices):
    """For which runs a grant holds."""

    RUN = "run", "this run"
    THREAD = "thread", "this thread"
    AGENT = "agent", "this agent"


_SCOPES = (
    Q(scope=Scope.RUN, run__isnull=False, thread__isnull=True, agent__isnull=True)
    | Q(scope=Scope.THREAD, run__isnull=True, thread__isnull=False, agent__isnull=True)
    | Q(scope=Scope.AGENT, run__isnull=True, thread__isnull=True, agent__isnull=False)
)


class Grant(models.Model):
    """One tool, as it was defined then, for one run, thread or agent; with the same arguments, or
    with those that meet conditions. It ends by time, by uses, by hand, with its grantor's right and
    with the definition.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="grants")
    interrupt = models.ForeignKey(
        Interrupt, models.CASCADE, related_name="grants", help_text="What it was decided on."
    )
    version = models.PositiveIntegerField(
        help_text="And which version: one taken back is the last."
    )
    grantor = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="grants")
    scope = models.CharField(max_length=6, choices=Scope)
    run = models.ForeignKey(Run, models.CASCADE, null=True, related_name="+")
    thread = models.ForeignKey(Thread, models.CASCADE, null=True, related_name="+")
    agent = models.ForeignKey(Agent, models.CASCADE, null=True, related_name="+")
    tool = models.CharField(max_length=100)
    schema_digest = models.CharField(max_length=64, help_text="The tool's definition.")
    args_digest = models.CharField(
        max_length=64, blank=True, help_text="Of the arguments, where only the same are allowed."
    )
    conditions = models.JSONField(default=dict, help_text="Else what arguments must meet.")
    created_at = models.DateTimeField(db_default=Now())
    valid_from = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    max_uses = models.PositiveIntegerField()
    uses = models.PositiveIntegerField(default=0)
    revoked_at = models.DateTimeField(null=True)
    revoked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )

    class Meta:
        db_table = "approval_grant"
        ordering = ["-created_at"]
        constraints = [
            models.UniqueConstraint(fields=["interrupt", "version"], name="grant_once_a_decision"),
            models.CheckConstraint(condition=_SCOPES, name="grant_scope_has_its_row"),
            models.CheckConstraint(
                condition=Q(uses__lte=F("max_uses")), name="grant_uses_within_bounds"
            ),
        ]
        indexes = [
            models.Index(
                fields=["project", "tool"],
                condition=Q(revoked_at__isnull=True),
                name="grant_of_tool",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tool} for {self.get_scope_display()}"


class GrantUse(models.Model):
    """That a call ran by a grant: each call counts once, however often it is recovered."""

    grant = models.ForeignKey(Grant, models.CASCADE, related_name="use_rows")
    tool_call_id = models.UUIDField(unique=True)
    run = models.ForeignKey(Run, models.CASCADE, related_name="+")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "approval_grant_use"

    def __str__(self) -> str:
        return f"{self.grant_id} for {self.tool_call_id}"

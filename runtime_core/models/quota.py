"""How much may go on at once: limits that an admin sets, and the permits that they are kept by."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from runtime_core.models.agent import Agent
from runtime_core.models.project import Project


class QuotaKind(models.TextChoices):
    """What a quota counts."""

    ALL = "all", "Running runs, all projects"
    PROJECT = "project", "Running runs of a project"
    AGENT = "agent", "Running runs of an agent"
    TOOL = "tool", "Calls of a tool at once"
    MODEL = "model", "Requests to a model at once"


class Quota(models.Model):
    """At most `at_once` of one kind at any instant. What has no quota is not limited."""

    MOST = 1_000

    kind = models.CharField(max_length=8, choices=QuotaKind)
    project = models.ForeignKey(Project, models.CASCADE, null=True, blank=True)
    agent = models.ForeignKey(Agent, models.CASCADE, null=True, blank=True)
    name = models.CharField(
        max_length=200, blank=True, help_text="The tool's or the model's name, exactly."
    )
    # What the claim looks it up by: the id of the project or agent, the name, or nothing.
    key = models.CharField(max_length=200, editable=False, blank=True)
    at_once = models.PositiveIntegerField(help_text=f"From 0 (nothing starts) to {MOST}.")
    updated_at = models.DateTimeField(auto_now=True)
    updated_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, editable=False
    )

    class Meta:
        db_table = "quota"
        ordering = ["kind", "key"]
        constraints = [
            models.UniqueConstraint(fields=["kind", "key"], name="quota_once"),
            models.CheckConstraint(
                condition=models.Q(kind__in=QuotaKind.values), name="quota_kind_known"
            ),
            models.CheckConstraint(condition=models.Q(at_once__lte=1_000), name="quota_is_bounded"),
        ]

    def __str__(self) -> str:
        of = self.project or self.agent or self.name
        return f"{self.kind} {of}: {self.at_once}" if of else f"{self.kind}: {self.at_once}"


class Permit(models.Model):
    """One of a quota's places. Taking it locks a free row and skips locked ones, so that nobody waits for anybody.

    `held_by` is a running run, `epoch` the claim under which it took the place. A retired place goes once it is free.
    """

    quota = models.ForeignKey(Quota, models.CASCADE, related_name="permits")
    held_by = models.UUIDField(null=True)
    epoch = models.PositiveBigIntegerField(default=0)
    taken_at = models.DateTimeField(null=True)
    retired = models.BooleanField(default=False)

    class Meta:
        # Only `quota` is indexed: taking and freeing a place stays in its page (heap-only updates).
        db_table = "permit"

    def __str__(self) -> str:
        return f"permit {self.pk}"


class ProjectQueue(models.Model):
    """A project's queue: how long it may grow, how long it was when last counted, and whose turn it is."""

    project = models.OneToOneField(Project, models.CASCADE, primary_key=True, related_name="queue")
    most = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="Runs that may wait; a start beyond it is refused. Empty: the deployment's own limit.",
    )
    queued = models.PositiveIntegerField(default=0, editable=False)
    counted_at = models.DateTimeField(db_default=Now(), editable=False)
    reaped = models.PositiveBigIntegerField(
        default=0, db_default=0, editable=False, help_text="Runs taken from lost workers, ever."
    )
    last_claimed = models.DateTimeField(null=True, editable=False)

    class Meta:
        db_table = "project_queue"

    def __str__(self) -> str:
        return f"queue of {self.project}"

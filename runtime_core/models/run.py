"""Runs, their leases and their steps."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from runtime_core.ids import new_id
from runtime_core.models.agent import Agent, AgentVersion
from runtime_core.models.checks import OneOf, never_negative
from runtime_core.models.kept import Kept
from runtime_core.models.project import Project
from runtime_core.models.thread import Thread
from runtime_core.states import ENDED, RunStatus

_ENDED = sorted(s.value for s in ENDED)
_LIVE = sorted(s.value for s in RunStatus if s not in ENDED)
_COUNTS = (
    "version", "attempt", "lease_epoch", "claims_without_progress", "model_failures", "next_step", "steps", "last_seq",
    "input_tokens", "output_tokens", "cost_microusd", "max_steps", "max_tokens", "max_cost_microusd", "deadline_s",
)  # fmt: skip


class Run(models.Model):
    """One execution from a request to an end. Its state is written by `transitions.py` alone."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="runs")
    thread = models.ForeignKey(Thread, models.CASCADE, related_name="runs")
    agent = models.ForeignKey(Agent, models.PROTECT, related_name="runs")
    agent_version = models.ForeignKey(AgentVersion, models.PROTECT, related_name="+")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    parent = models.ForeignKey(
        "self",
        models.SET_NULL,
        null=True,
        related_name="children",
        help_text="Whose tool call started it, or which run it was forked from.",
    )
    parent_call = models.UUIDField(
        null=True, unique=True, help_text="The tool call that it answers; a call has one child."
    )
    path = models.JSONField(
        default=list, help_text="From the first run down: [agent, id of the call] each."
    )
    undoes = models.ForeignKey(
        "self",
        models.CASCADE,
        null=True,
        related_name="undone_by",
        db_index=False,
        help_text="The run whose effects this one takes back.",
    )
    compensation = models.CharField(
        max_length=5,
        blank=True,
        default="",
        db_default="",
        help_text="`due`: its effects are taken back when it has failed or was stopped; `begun`: that is under way.",
    )
    title = models.CharField(max_length=120)
    input = models.TextField(help_text="Redacted; what the model reads is the thread's message.")
    metadata = models.JSONField(default=dict)

    status = models.CharField(max_length=12, default=RunStatus.PENDING.value)
    version = models.BigIntegerField(default=0)
    attempt = models.IntegerField(default=1)
    # The higher, the sooner, among the runs of its project.
    priority = models.SmallIntegerField(default=0)
    available_at = models.DateTimeField(db_default=models.functions.Now())
    # `tool:NAME` or `model:NAME` while and since it waited for a place; a commit of its next step clears it.
    waits_for = models.CharField(max_length=210, blank=True, default="", db_default="")
    lease_epoch = models.BigIntegerField(default=0)
    claims_without_progress = models.SmallIntegerField(default=0)
    model_failures = models.SmallIntegerField(default=0)
    cancel_requested_at = models.DateTimeField(null=True)
    cancel_requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    pause_requested_at = models.DateTimeField(null=True)

    next_step = models.IntegerField(default=0)
    steps = models.IntegerField(default=0)
    last_seq = models.BigIntegerField(default=0)
    input_tokens = models.BigIntegerField(default=0)
    output_tokens = models.BigIntegerField(default=0)
    cost_microusd = models.BigIntegerField(default=0)
    max_steps = models.IntegerField()
    max_tokens = models.BigIntegerField()
    max_cost_microusd = models.BigIntegerField()
    deadline_s = models.IntegerField()
    deadline_at = models.DateTimeField(null=True)

    # Null: there is none yet; an empty text is an answer.
    output = models.TextField(null=True)  # noqa: DJ001
    error = models.JSONField(null=True)
    created_at = models.DateTimeField(db_default=models.functions.Now())
    started_at = models.DateTimeField(null=True)
    # Since then its clock stands still: it waits for a person, or for the runs that work for it.
    stopped_at = models.DateTimeField(
        null=True, help_text="When it last began to wait for a person."
    )
    ended_at = models.DateTimeField(null=True)
    deleted_at = models.DateTimeField(
        null=True, editable=False, help_text="Since then nobody sees it; it is being deleted."
    )

    objects = Kept["Run"]()
    everything = models.Manager["Run"]()

    class Meta:
        db_table = "run"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(OneOf("status", _LIVE), ended_at__isnull=True)
                | models.Q(OneOf("status", _ENDED), ended_at__isnull=False),
                name="run_status_fits",
            ),
            models.CheckConstraint(condition=never_negative(*_COUNTS), name="run_counts"),
            models.CheckConstraint(
                condition=models.Q(priority__gte=-10, priority__lte=10),
                name="run_priority_bounded",
            ),
            models.CheckConstraint(
                condition=OneOf("compensation", ["", "due", "begun"]),
                name="run_compensation_known",
            ),
            models.UniqueConstraint(
                fields=["undoes"],
                condition=models.Q(undoes__isnull=False) & ~models.Q(status__in=_ENDED),
                name="run_one_takes_back",
            ),
            models.UniqueConstraint(
                fields=["thread"], condition=~models.Q(status__in=_ENDED), name="run_one_a_thread"
            ),
        ]
        indexes = [
            models.Index(
                fields=["ended_at"], condition=models.Q(ended_at__isnull=False), name="run_ended"
            ),
            models.Index(
                fields=["undoes"], condition=models.Q(undoes__isnull=False), name="run_takes_back"
            ),
            models.Index(
                fields=["id"], condition=models.Q(compensation="due"), name="run_to_take_back"
            ),
            # Each agent's queue in its order; the claim steps from one project and agent to the next.
            models.Index(
                "project",
                "agent",
                models.F("priority").desc(),
                "available_at",
                "id",
                condition=models.Q(status=RunStatus.PENDING.value),
                name="run_to_claim",
            ),
            models.Index(
                "waits_for",
                "available_at",
                condition=models.Q(status=RunStatus.WAITING.value) & ~models.Q(waits_for=""),
                name="run_for_a_permit",
            ),
            models.Index(
                "available_at",
                condition=models.Q(status=RunStatus.WAITING.value),
                name="run_to_wake",
            ),
            models.Index(fields=["project", "-created_at", "-id"], name="run_newest"),
            models.Index(
                fields=["project", "status"],
                condition=~models.Q(status__in=_ENDED),
                name="run_not_ended",
            ),
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def state(self) -> RunStatus:
        """The status as its enum."""
        return RunStatus(self.status)

    @property
    def live_children(self) -> models.QuerySet[Run]:
        """The runs that work for this one and have not ended."""
        return Run.objects.filter(parent=self, parent_call__isnull=False, ended_at__isnull=True)

    @property
    def is_child(self) -> bool:
        """True if it answers a tool call of its parent; a fork has a parent too and answers nobody."""
        return self.parent_call is not None

    @property
    def cancelling(self) -> bool:
        """True while a cancel was asked for and the work has not yet stopped."""
        return self.cancel_requested_at is not None and not self.state.ended


class RunLease(models.Model):
    """Which worker holds a running run, and until when: narrow, so that heartbeats stay cheap (heap-only updates)."""

    run = models.OneToOneField(Run, models.CASCADE, primary_key=True, related_name="lease")
    epoch = models.PositiveBigIntegerField()
    worker = models.CharField(max_length=120)
    until = models.DateTimeField()

    class Meta:
        db_table = "run_lease"

    def __str__(self) -> str:
        return f"{self.worker} until {self.until}"


class Step(models.Model):
    """One model decision or one tool execution of a run."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    run = models.ForeignKey(Run, models.CASCADE, related_name="step_rows", db_index=False)
    index = models.IntegerField()
    kind = models.CharField(max_length=8)
    status = models.CharField(max_length=10)
    epoch = models.BigIntegerField()
    attempt = models.IntegerField(default=1)
    name = models.CharField(max_length=120)
    detail = models.JSONField(default=dict)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(db_default=models.functions.Now())

    class Meta:
        db_table = "step"
        ordering = ["index"]
        constraints = [
            models.UniqueConstraint(fields=["run", "index"], name="step_index_once"),
            models.CheckConstraint(
                condition=OneOf("kind", ["model", "tool", "node"]), name="step_kind_known"
            ),
            models.CheckConstraint(
                condition=OneOf("status", ["succeeded", "failed", "cancelled"]),
                name="step_status_known",
            ),
            models.CheckConstraint(
                condition=never_negative("index", "epoch", "attempt"), name="step_counts"
            ),
        ]

    def __str__(self) -> str:
        return f"step {self.index} of {self.run_id}"

"""How people share the work on requests: who looks after one, who stands in for whom, what each has
put off or keeps as a view.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from approvals.models.policy import ApproverGroup
from runtime_core.ids import new_id
from runtime_core.models import Interrupt, Project
from runtime_core.values import Risk


class Delegation(models.Model):
    """That one person stands in for another: for a time, in one project, perhaps for one tool or up
    to a risk only. It gives no more than its delegator may do at that moment.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="delegations")
    delegator = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="delegations"
    )
    delegate = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="stands_in_by"
    )
    tool = models.CharField(
        max_length=100, blank=True, help_text="The tool's name; empty: every tool."
    )
    max_risk = models.CharField(
        max_length=8, choices=[(r.value, r.value) for r in Risk], default=Risk.CRITICAL.value
    )
    starts_at = models.DateTimeField(db_default=Now())
    ends_at = models.DateTimeField()
    created_at = models.DateTimeField(db_default=Now())
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False, related_name="+"
    )
    revoked_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        db_table = "delegation"
        ordering = ["-created_at"]
        constraints = [
            models.CheckConstraint(
                condition=~Q(delegator=F("delegate")), name="delegation_to_somebody_else"
            ),
            models.CheckConstraint(
                condition=Q(ends_at__gt=F("starts_at")), name="delegation_ends_later"
            ),
            models.CheckConstraint(
                condition=Q(max_risk__in=[r.value for r in Risk]), name="delegation_risk_known"
            ),
        ]
        indexes = [
            models.Index(
                fields=["delegate", "project"],
                condition=Q(revoked_at__isnull=True),
                name="delegation_of_delegate",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.delegate} stands in for {self.delegator}"


class InterruptClaim(models.Model):
    """That somebody looks after a request until then. It keeps nobody else from deciding."""

    interrupt = models.OneToOneField(
        Interrupt, models.CASCADE, primary_key=True, related_name="claim"
    )
    holder = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    since = models.DateTimeField(db_default=Now())
    until = models.DateTimeField()

    class Meta:
        db_table = "interrupt_claim"

    def __str__(self) -> str:
        return f"{self.interrupt_id} by {self.holder_id}"


class Assignment(models.Model):
    """That a request was given to a person or a group. Others may still decide on it."""

    interrupt = models.ForeignKey(Interrupt, models.CASCADE, related_name="assignments")
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="assignments"
    )
    group = models.ForeignKey(ApproverGroup, models.CASCADE, null=True, related_name="assignments")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "interrupt_assignment"
        constraints = [
            models.CheckConstraint(
                condition=Q(person__isnull=False, group__isnull=True)
                | Q(person__isnull=True, group__isnull=False),
                name="assignment_has_one_target",
            ),
            models.UniqueConstraint(fields=["interrupt", "person"], name="assignment_person_once"),
            models.UniqueConstraint(fields=["interrupt", "group"], name="assignment_group_once"),
        ]

    def __str__(self) -> str:
        return f"{self.interrupt_id} to {self.person_id or self.group_id}"


class Snooze(models.Model):
    """That somebody does not want to see a request before then; for everybody else it stays."""

    interrupt = models.ForeignKey(Interrupt, models.CASCADE, related_name="snoozes")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="snoozes")
    until = models.DateTimeField()

    class Meta:
        db_table = "interrupt_snooze"
        constraints = [
            models.UniqueConstraint(fields=["user", "interrupt"], name="snooze_once_a_person"),
        ]

    def __str__(self) -> str:
        return f"{self.interrupt_id} until {self.until}"


class SavedView(models.Model):
    """A filtered inbox under a name: a person's own, or a project's for all its people."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="saved_views")
    project = models.ForeignKey(
        Project, models.CASCADE, null=True, help_text="Empty: the owner's own."
    )
    name = models.CharField(max_length=60)
    query = models.CharField(max_length=300, help_text="The inbox's query string.")
    is_default = models.BooleanField(default=False)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "saved_view"
        ordering = ["name", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "name"], condition=Q(project=None), name="saved_view_name_once"
            ),
            models.UniqueConstraint(
                fields=["project", "name"],
                condition=Q(project__isnull=False),
                name="saved_view_team_name_once",
            ),
            models.UniqueConstraint(
                fields=["owner"], condition=Q(is_default=True), name="saved_view_one_default"
            ),
            models.CheckConstraint(
                condition=Q(is_default=False) | Q(project=None), name="saved_view_own_is_default"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class EscalationStep(models.Model):
    """That one step of a request's ladder was taken: once, whoever swept. Where it widened, whom it
    let in.
    """

    interrupt = models.ForeignKey(Interrupt, models.CASCADE, related_name="escalations")
    step = models.PositiveSmallIntegerField()
    action = models.CharField(max_length=8)
    roles = models.JSONField(default=list)
    groups = models.JSONField(default=list)
    people = models.JSONField(default=list)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "interrupt_escalation"
        constraints = [
            models.UniqueConstraint(fields=["interrupt", "step"], name="escalation_step_once"),
            models.CheckConstraint(
                condition=Q(action__in=["notify", "widen", "raise"]), name="escalation_known"
            ),
        ]

    def __str__(self) -> str:
        return f"step {self.step} of {self.interrupt_id}"


class HistoryEntry(models.Model):
    """One line of a request's history beside its decisions: who did what, in words, redacted."""

    interrupt = models.ForeignKey(Interrupt, models.CASCADE, related_name="history")
    actor_name = models.CharField(max_length=150)
    text = models.CharField(max_length=300)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "interrupt_history"
        ordering = ["created_at", "id"]
        indexes = [models.Index(fields=["interrupt", "created_at"], name="history_of_interrupt")]

    def __str__(self) -> str:
        return f"{self.actor_name} {self.text}"

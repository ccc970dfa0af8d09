"""Approval policies and the groups that they name, as an admin keeps them."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from approvals.terms import EXPIRES_MAX, ON_EXPIRY, REQUIRED_MAX, UNDO_MAX
from runtime_core.ids import new_id
from runtime_core.models import Project
from runtime_core.values import Risk


class ApproverGroup(models.Model):
    """People of a project whom policies name together. Being in it gives no other right."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="approver_groups")
    name = models.CharField(max_length=60)
    members = models.ManyToManyField(
        settings.AUTH_USER_MODEL, blank=True, related_name="approver_groups"
    )

    class Meta:
        db_table = "approver_group"
        ordering = ["project", "name"]
        constraints = [
            models.UniqueConstraint(fields=["project", "name"], name="approver_group_name_once"),
        ]

    def __str__(self) -> str:
        return self.name


class ApprovalPolicy(models.Model):
    """One version of a policy; it never changes. An edit adds the next one of the same `lineage`.

    The last one of a lineage counts, unless it was retired.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    lineage = models.UUIDField(default=new_id, editable=False)
    number = models.PositiveIntegerField(default=1, editable=False)
    name = models.CharField(max_length=80)
    note = models.CharField(max_length=200, blank=True)

    project = models.ForeignKey(
        Project, models.CASCADE, null=True, blank=True, help_text="Empty: every project."
    )
    agent = models.CharField(
        max_length=60,
        blank=True,
        help_text="An agent's name or a pattern such as ops-*; empty: any.",
    )
    tool = models.CharField(
        max_length=100,
        blank=True,
        help_text="A tool's name or a pattern such as git_*; empty: any.",
    )
    risk = models.CharField(
        max_length=8,
        blank=True,
        choices=[(r.value, r.value) for r in Risk],
        help_text="Empty: any.",
    )
    conditions = models.JSONField(
        default=dict,
        blank=True,
        help_text='Conditions on arguments, e.g. {"amount": {"min": 1000}}; empty: any.',
    )

    required = models.PositiveSmallIntegerField(
        "people required", default=1, help_text="How many different people must approve."
    )
    roles = models.JSONField(default=list, blank=True)
    groups = models.JSONField(default=list, blank=True)
    people = models.JSONField(default=list, blank=True)
    requester_may = models.BooleanField(
        "the requester may decide", default=False, help_text="On the run that they started."
    )
    editor_may = models.BooleanField(
        "an editor may decide", default=True, help_text="On the arguments that they changed."
    )
    machines_may = models.BooleanField(
        "service tokens may decide", default=False, help_text="Through the API."
    )
    expires_minutes = models.PositiveIntegerField(
        default=24 * 60, help_text="How long people have to decide."
    )
    on_expiry = models.CharField(
        max_length=8, default=ON_EXPIRY[0], choices=[(word, word) for word in ON_EXPIRY]
    )
    escalation = models.JSONField(
        default=list,
        blank=True,
        help_text='Steps such as [{"after_minutes": 30, "action": "notify", "roles": ["admin"]}]; '
        "an action is notify, widen or raise; roles, groups and people are given by name.",
    )
    undo_seconds = models.PositiveSmallIntegerField(
        default=5,
        help_text="How long a decision made on the page may be taken back; 0: not at all.",
    )
    remember_may = models.BooleanField(
        "decisions may be remembered", default=False, help_text="For later calls like this one."
    )

    created_at = models.DateTimeField(db_default=Now())
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False, related_name="+"
    )
    superseded_at = models.DateTimeField(null=True, editable=False)
    retired = models.BooleanField(
        default=False,
        editable=False,
        help_text="From this version on the policy applies to nothing.",
    )

    class Meta:
        db_table = "approval_policy"
        ordering = ["name", "-number"]
        verbose_name_plural = "approval policies"
        constraints = [
            models.UniqueConstraint(
                fields=["lineage", "number"], name="approval_policy_version_once"
            ),
            models.UniqueConstraint(
                fields=["lineage"],
                condition=Q(superseded_at__isnull=True),
                name="approval_policy_one_current",
            ),
            models.CheckConstraint(
                condition=Q(required__gte=1, required__lte=REQUIRED_MAX),
                name="approval_policy_required_bounded",
            ),
            models.CheckConstraint(
                condition=Q(expires_minutes__gte=1, expires_minutes__lte=EXPIRES_MAX),
                name="approval_policy_expiry_bounded",
            ),
            models.CheckConstraint(
                condition=Q(undo_seconds__lte=UNDO_MAX), name="approval_policy_undo_bounded"
            ),
            models.CheckConstraint(
                condition=Q(on_expiry__in=ON_EXPIRY), name="approval_policy_on_expiry_known"
            ),
            models.CheckConstraint(
                condition=Q(risk__in=["", *(r.value for r in Risk)]),
                name="approval_policy_risk_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} v{self.number}"

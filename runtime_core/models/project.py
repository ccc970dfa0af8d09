"""Projects, who belongs to them in which role, and API tokens."""

from __future__ import annotations

import hashlib
import secrets

from django.conf import settings
from django.db import models

from runtime_core.ids import new_id


class Role(models.TextChoices):
    """What a member may do; a person may hold several roles in one project."""

    VIEWER = "viewer", "Viewer: sees runs, traces and the inbox list"
    OPERATOR = "operator", "Operator: starts, cancels and resumes runs"
    AUDITOR = "auditor", "Auditor: sees what a viewer sees, and personal data for a stated reason"
    APPROVER = "approver", "Approver: decides in the inbox"
    ADMIN = "admin", "Admin: all of it, and manages the project"


class Project(models.Model):
    """What runs, agents and people are scoped by."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    slug = models.SlugField(max_length=60, unique=True)
    name = models.CharField(max_length=120)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "project"
        ordering = ["slug"]

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """One role of one person in one project."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=12, choices=Role)

    class Meta:
        db_table = "membership"
        constraints = [
            models.UniqueConstraint(fields=["project", "user", "role"], name="membership_once"),
            models.CheckConstraint(
                condition=models.Q(role__in=Role.values), name="membership_role_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.project}"


class ApiToken(models.Model):
    """A bearer token of a person, stored as a hash; its text is shown once, at creation."""

    PREFIX = "ilk_"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="api_tokens")
    project = models.ForeignKey(
        Project, models.CASCADE, null=True, blank=True, help_text="Empty: all projects of the user."
    )
    name = models.CharField(max_length=80, blank=True)
    is_machine = models.BooleanField(
        "service token",
        db_default=False,
        default=False,
        help_text="A program decides with it, not the person: marked so, and policies may refuse it.",
    )
    digest = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "api_token"

    def __str__(self) -> str:
        return self.name or f"token of {self.user}"

    @classmethod
    def issue(
        cls,
        user: models.Model,
        project: Project | None = None,
        name: str = "",
        *,
        is_machine: bool = False,
    ) -> tuple[ApiToken, str]:
        """A new token and its text, which is not stored and cannot be shown again."""
        text = cls.PREFIX + secrets.token_urlsafe(32)
        row = cls.objects.create(
            user=user,
            project=project,
            name=name,
            is_machine=is_machine,
            digest=cls.digest_of(text),
        )
        return row, text

    @staticmethod
    def digest_of(text: str) -> str:
        """SHA-256 in hex: enough for 256 random bits, and constant to look up."""
        return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


class IdempotencyKey(models.Model):
    """The answer that a write with an `Idempotency-Key` got, so that its repeat gets the same one."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE)
    key = models.CharField(max_length=64, help_text="SHA-256 of what was sent.")
    request_digest = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True)
    response = models.JSONField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "idempotency_key"
        constraints = [
            models.UniqueConstraint(fields=["user", "key"], name="idempotency_key_once"),
        ]

    def __str__(self) -> str:
        return self.key

"""Redaction policies that an admin writes: a change is a new version, and what was in force stays to be read."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models
from django.db.models.functions import Now

from runtime_core.ids import new_id

SURFACES = ("event", "span", "audit", "log", "page", "export")


def every_surface() -> list[str]:
    """All of them: a rule is narrowed on purpose, never by forgetting."""
    return list(SURFACES)


class Immutable(models.Model):
    """Rows that are added and never changed or taken away."""

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Add the row; a version that is there stays what it is."""
        if not self._state.adding:
            raise TypeError("A version of a redaction policy is never changed; add the next one.")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        """Refused: what was in force stays to be read."""
        raise TypeError("A version of a redaction policy is never deleted; switch it off instead.")


class RedactionPolicy(Immutable):
    """One version of a named policy; of each name the newest version is in force, if it is enabled."""

    class Scope(models.TextChoices):
        """What it holds for."""

        GLOBAL = "global", "Everything"
        PROJECT = "project", "One project"
        AGENT = "agent", "One agent"
        TOOL = "tool", "One tool"

    class Output(models.TextChoices):
        """What is kept for people of a tool's arguments and results, strictest last."""

        NONE = "none", "Secrets go, personal data stays"
        REDACT = "redact", "Secrets and personal data go"
        METADATA_ONLY = "metadata_only", "Only type and size"
        DROP = "drop", "Nothing"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    name = models.SlugField(max_length=60)
    version = models.PositiveIntegerField(default=1, editable=False)
    enabled = models.BooleanField(default=True)
    scope = models.CharField(max_length=8, choices=Scope, default=Scope.GLOBAL)
    project = models.ForeignKey(
        "runtime_core.Project", models.CASCADE, null=True, blank=True, related_name="+"
    )
    agent = models.ForeignKey(
        "runtime_core.Agent", models.CASCADE, null=True, blank=True, related_name="+"
    )
    tool = models.CharField(
        max_length=100, blank=True, help_text="The tool's name, with scope tool."
    )
    output = models.CharField(
        max_length=14,
        choices=Output,
        default=Output.REDACT,
        help_text="Of this tool's arguments and results; only with scope tool.",
    )
    surfaces = ArrayField(
        models.CharField(max_length=8, choices=[(s, s) for s in SURFACES]),
        default=every_surface,
        help_text="Where its rules work.",
    )
    note = models.CharField(max_length=200, blank=True, help_text="Why it is there.")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False, related_name="+"
    )

    class Meta:
        db_table = "redaction_policy"
        ordering = ["name", "-version"]
        verbose_name_plural = "redaction policies"
        constraints = [
            models.UniqueConstraint(
                fields=["name", "version"], name="redaction_policy_version_once"
            ),
            models.CheckConstraint(
                condition=models.Q(scope="global", project=None, agent=None, tool="")
                | models.Q(scope="project", project__isnull=False, agent=None, tool="")
                | models.Q(scope="agent", project=None, agent__isnull=False, tool="")
                | (models.Q(scope="tool", agent=None) & ~models.Q(tool="")),
                name="redaction_policy_scope_named",
            ),
            models.CheckConstraint(
                condition=models.Q(output__in=["none", "redact", "metadata_only", "drop"])
                & (models.Q(scope="tool") | models.Q(output="redact")),
                name="redaction_policy_output_of_a_tool",
            ),
            models.CheckConstraint(
                condition=models.Q(surfaces__contained_by=list(SURFACES), surfaces__len__gt=0),
                name="redaction_policy_surfaces_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"

    def clean(self) -> None:
        """Refuse a scope that names the wrong thing, and a second policy of one name."""
        if self._state.adding and type(self).objects.filter(name=self.name).exists():
            raise ValidationError({"name": "There is a policy of this name: change that one."})
        needed = {"project": self.project_id, "agent": self.agent_id, "tool": self.tool}
        extra = {"tool": {"project"}}.get(self.scope, set())
        for field, value in needed.items():
            if field == self.scope and not value:
                raise ValidationError({field: f"With scope {self.scope}, name the {field}."})
            if field != self.scope and value and field not in extra:
                raise ValidationError({field: f"With scope {self.scope}, leave this empty."})
        if self.scope != "tool" and self.output != "redact":
            raise ValidationError({"output": "Only a policy of one tool says what is kept of it."})


class RedactionRule(Immutable):
    """One rule of one version of a policy."""

    class Kind(models.TextChoices):
        """What it looks at."""

        REGEX = "regex", "Pattern: what matches goes"
        KEY_NAME = "key_name", "Key name: the value under it goes"
        KNOWN_VALUE = "known_value", "Environment variables: their values go"
        ALLOW = "allow", "Allow: personal data that matches stays"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    policy = models.ForeignKey(RedactionPolicy, models.CASCADE, related_name="rules")
    kind = models.CharField(max_length=12, choices=Kind, default=Kind.REGEX)
    label = models.CharField(
        max_length=30,
        validators=[RegexValidator(r"^[a-z][a-z0-9_]*\Z", "a-z, 0-9 and _, a letter first.")],
        help_text="The class in the marker: employee_id gives [REDACTED:employee_id].",
    )
    pattern = models.CharField(
        max_length=500,
        help_text="A pattern of bounded length; or, with * for anything, a key name or a variable's name.",
    )
    positives = models.TextField(blank=True, help_text="Texts that it must change, one a line.")
    negatives = models.TextField(blank=True, help_text="Texts that it must leave, one a line.")

    class Meta:
        db_table = "redaction_rule"
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(kind__in=["regex", "key_name", "known_value", "allow"]),
                name="redaction_rule_kind_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.label}"

    def clean(self) -> None:
        """Refuse a rule that cannot work, misses its own examples, or would change too much."""
        from traces.policies.checks import problem_of  # models come first when apps load

        problem = problem_of(self)
        if problem:
            raise ValidationError({problem.field: problem.text})

"""Agents, their immutable versions, and which of their tools may do what."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from runtime_core.ids import new_id
from runtime_core.models.project import Project
from runtime_core.models.sealed import SealedField
from runtime_core.values import Verdict


class Agent(models.Model):
    """A named agent of a project; what it is stands in its versions."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="agents")
    name = models.SlugField(max_length=60)
    current = models.ForeignKey(
        "AgentVersion", models.PROTECT, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "agent"
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["project", "name"], name="agent_name_once"),
        ]

    def __str__(self) -> str:
        return self.name


class AgentVersion(models.Model):
    """One immutable definition of an agent; a run keeps the one it started with.

    `definition`: name, engine, model?, script?, instructions, tools [names], workspace?, limits {}.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    agent = models.ForeignKey(Agent, models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    definition = SealedField(as_json=True)
    digest = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "agent_version"
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["agent", "number"], name="agent_version_once"),
        ]

    def __str__(self) -> str:
        return f"{self.agent.name} v{self.number}"


class ToolPermission(models.Model):
    """What one agent may do with one tool; `constraints` narrow an allow to certain arguments."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    agent = models.ForeignKey(Agent, models.CASCADE, related_name="permissions")
    tool = models.CharField(
        max_length=100, help_text="The tool's name, or a pattern such as git_*."
    )
    verdict = models.CharField(max_length=8, choices=[(v.value, v.value) for v in Verdict])
    constraints = models.JSONField(
        default=dict,
        blank=True,
        help_text='Conditions on arguments, e.g. {"amount": {"max": 50}}; an allow whose conditions '
        "do not hold asks.",
    )
    note = models.CharField(max_length=200, blank=True)
    updated_at = models.DateTimeField(auto_now=True)
    updated_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, editable=False
    )

    class Meta:
        db_table = "tool_permission"
        ordering = ["agent", "tool"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(verdict__in=[v.value for v in Verdict]),
                name="tool_permission_verdict_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.agent.name}: {self.verdict} {self.tool}"

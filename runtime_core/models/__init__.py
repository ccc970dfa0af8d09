"""The stored rows, one file an aggregate."""

from __future__ import annotations

from runtime_core.models.agent import Agent, AgentVersion, ToolPermission
from runtime_core.models.checkpoint import Checkpoint
from runtime_core.models.event import Event
from runtime_core.models.interrupt import Interrupt
from runtime_core.models.project import ApiToken, IdempotencyKey, Membership, Project, Role
from runtime_core.models.quota import Permit, ProjectQueue, Quota, QuotaKind
from runtime_core.models.run import Run, RunLease, Step
from runtime_core.models.thread import Message, Thread
from runtime_core.models.tool_call import ToolCall
from runtime_core.models.worker import Worker

__all__ = [
    "Agent",
    "AgentVersion",
    "ApiToken",
    "Checkpoint",
    "Event",
    "IdempotencyKey",
    "Interrupt",
    "Membership",
    "Message",
    "Permit",
    "Project",
    "ProjectQueue",
    "Quota",
    "QuotaKind",
    "Role",
    "Run",
    "RunLease",
    "Step",
    "Thread",
    "ToolCall",
    "ToolPermission",
    "Worker",
]

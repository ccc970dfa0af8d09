"""People and rows that the pages show, made straight in the database."""

from __future__ import annotations

import datetime as dt
import itertools
from typing import Any

from django.contrib.auth import get_user_model

from runtime_core import clock
from runtime_core.ids import new_id
from runtime_core.models import (
    Agent,
    AgentVersion,
    Event,
    Interrupt,
    Membership,
    Project,
    Run,
    Step,
    Thread,
    ToolCall,
    ToolPermission,
)
from runtime_core.values import Span
from traces.spans import table

ENDED = ("completed", "failed", "cancelled", "timed_out")
_numbers = itertools.count(1)


def make_user(name: str, project: Project | None = None, *roles: str, **fields: Any) -> Any:
    """A person with these roles in the project."""
    user = get_user_model().objects.create_user(name, password="interlock-demo", **fields)
    for role in roles:
        Membership.objects.create(project=project, user=user, role=role)
    return user


class World:
    """One project with an agent and everybody in it, and a stranger."""

    def __init__(self) -> None:
        self.project = Project.objects.create(slug="demo", name="Demo")
        self.operator = make_user("ana", self.project, "operator")
        self.approver = make_user("mei", self.project, "approver")
        self.viewer = make_user("bo", self.project, "viewer")
        self.stranger = make_user("cy")
        self.admin = make_user("root", is_superuser=True, is_staff=True)
        self.agent = self.make_agent("code-fixer")

    def make_agent(self, name: str, **definition: Any) -> Agent:
        """An agent with one version and two rules."""
        agent = Agent.objects.create(project=self.project, name=name)
        agent.current = AgentVersion.objects.create(
            agent=agent,
            number=1,
            digest=f"{next(_numbers):064}",
            definition={
                "name": name,
                "engine": "react",
                "instructions": "Mend the failing test.",
                "tools": ["read_file", "write_file", "run_command"],
                **definition,
            },
        )
        agent.save()
        ToolPermission.objects.create(agent=agent, tool="read_file", verdict="allow")
        ToolPermission.objects.create(
            agent=agent,
            tool="run_command",
            verdict="allow",
            constraints={"argv": {"prefix": [["python3", "-m", "unittest"]]}},
        )
        return agent

    def run(self, status: str = "running", *, title: str = "Fix flaky test", **fields: Any) -> Run:
        """A run of the operator."""
        now = clock.now()
        given: dict[str, Any] = {
            "project": self.project,
            "thread": Thread.objects.create(project=self.project, created_by=self.operator),
            "agent": self.agent,
            "agent_version": self.agent.current,
            "created_by": self.operator,
            "title": title,
            "input": title,
            "status": status,
            "steps": 2,
            "input_tokens": 182_000,
            "output_tokens": 900,
            "cost_microusd": 410_000,
            "max_steps": 50,
            "max_tokens": 400_000,
            "max_cost_microusd": 2_000_000,
            "deadline_s": 1_800,
            "created_at": now - dt.timedelta(minutes=4),
            "started_at": now - dt.timedelta(minutes=3, seconds=50),
            "ended_at": now if status in ENDED else None,
        }
        return Run.objects.create(**{**given, **fields})

    def event(self, run: Run, type: str, data: dict[str, Any], step: int | None = None) -> Event:
        """The run's next event."""
        run.last_seq += 1
        run.save(update_fields=["last_seq"])
        return Event.objects.create(run=run, seq=run.last_seq, type=type, data=data, step=step)

    def step(self, run: Run, index: int, status: str = "succeeded") -> Step:
        """A model step."""
        start = run.created_at + dt.timedelta(seconds=20 * (index + 1))
        return Step.objects.create(
            run=run, index=index, kind="model", status=status, epoch=1, name=run.agent.name,
            started_at=start, ended_at=start + dt.timedelta(seconds=15),
        )  # fmt: skip

    def call(
        self, run: Run, tool: str = "read_file", status: str = "succeeded", **fields: Any
    ) -> ToolCall:
        """A tool call."""
        start = run.created_at + dt.timedelta(seconds=36)
        number = next(_numbers)
        given: dict[str, Any] = {
            "run": run, "step": 0, "position": number, "call_id": f"call-{number}", "tool": tool,
            "effect": "read", "risk": "low", "status": status, "args_text": "{}",
            "args_digest": "0" * 64, "args_redacted": {"path": "calc.py"},
            "schema_digest": "1" * 64,
            "idempotency_key": f"key-{number}", "started_at": start,
            "ended_at": start + dt.timedelta(seconds=2),
        }  # fmt: skip
        return ToolCall.objects.create(**{**given, **fields})

    def ask(self, run: Run, tool: str = "write_file", **fields: Any) -> Interrupt:
        """An open interrupt."""
        call = self.call(run, tool, "awaiting_approval", started_at=None, ended_at=None)
        given: dict[str, Any] = {
            "project": self.project, "run": run, "tool_call": call, "kind": "tool_approval",
            "digest": "0" * 64, "risk": "medium", "reason": "Writes are asked about.",
            "expires_at": clock.now() + dt.timedelta(hours=5),
        }  # fmt: skip
        return Interrupt.objects.create(**{**given, **fields})

    def span(self, run: Run, **fields: Any) -> Span:
        """A span of the run, written."""
        given: dict[str, Any] = {
            "id": new_id(), "run_id": run.id, "parent_id": run.id, "kind": "tool",
            "name": "read_file", "started_at": run.created_at + dt.timedelta(seconds=30),
            "ended_at": run.created_at + dt.timedelta(seconds=33), "status": "ok",
        }  # fmt: skip
        span = Span(**{**given, **fields})
        table.upsert([span])
        return span

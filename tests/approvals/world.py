"""Rows to decide on, made straight in the database: no worker, no model."""

from __future__ import annotations

import datetime as dt
import hashlib
import itertools
import json
from typing import Any

from django.contrib.auth import get_user_model

from approvals.models import ApprovalPolicy
from approvals.policy import stored as policies
from approvals.terms import defaults
from runtime_core import clock
from runtime_core.models import (
    Agent,
    AgentVersion,
    Interrupt,
    Membership,
    Project,
    Run,
    Thread,
    ToolCall,
)
from runtime_core.tools import gate
from runtime_core.tools.registry import registry
from runtime_core.values import Actor, Risk
from traces.models import AuditEntry

PASSWORD = "interlock-demo"
_numbers = itertools.count(1)


def make_user(name: str, project: Project | None = None, *roles: str) -> Any:
    """A person with these roles in the project."""
    user = get_user_model().objects.create_user(name, password=PASSWORD)
    for role in roles:
        Membership.objects.create(project=project, user=user, role=role)
    return user


class World:
    """One project with everybody in it, and a stranger."""

    def __init__(self) -> None:
        self.project = Project.objects.create(slug="demo", name="Demo")
        self.operator = make_user("operator", self.project, "operator")
        self.approver = make_user("approver", self.project, "approver")
        self.approver2 = make_user("approver2", self.project, "approver")
        self.viewer = make_user("viewer", self.project, "viewer")
        self.stranger = make_user("stranger")
        self.agent = Agent.objects.create(project=self.project, name="code-fixer")
        self.version = AgentVersion.objects.create(
            agent=self.agent, number=1, digest="0" * 64, definition={"engine": "react", "tools": []}
        )

    def run(self, *, by: Any = None, title: str = "Fix the failing test") -> Run:
        """A run that waits for a person."""
        owner = by or self.operator
        return Run.objects.create(
            project=self.project,
            thread=Thread.objects.create(project=self.project, created_by=owner),
            agent=self.agent,
            agent_version=self.version,
            created_by=owner,
            title=title,
            input=title,
            status="interrupted",
            version=3,
            steps=2,
            next_step=2,
            max_steps=50,
            max_tokens=400_000,
            max_cost_microusd=5_000_000,
            deadline_s=3_600,
            input_tokens=1_840,
            output_tokens=212,
            started_at=clock.now(),
        )

    def ask(
        self,
        tool: str = "write_file",
        args: dict[str, Any] | None = None,
        *,
        run: Run | None = None,
        risk: str = "medium",
        kind: str = "tool_approval",
        reason: str = "Writes are asked about.",
        expires_in: dt.timedelta = dt.timedelta(hours=24),
        shown_args: dict[str, Any] | None = None,
        ruled: bool = False,
    ) -> Interrupt:
        """An open interrupt about a call of `tool`; `shown_args` is the redacted copy, if it
        differs. `ruled`: under the policies that are in force, else as from before there were any.
        """
        run = run or self.run()
        args = {"path": "calc.py", "content": FIXED} if args is None else args
        text = json.dumps(args, ensure_ascii=False)
        declared = registry().get(tool)
        schema_digest = declared.spec.digest if declared else "1" * 64
        number = next(_numbers)
        call = ToolCall.objects.create(
            run=run,
            step=1,
            position=run.tool_calls.count(),
            call_id=f"call-{number}",
            tool=tool,
            effect="once",
            risk=risk,
            status="awaiting_approval",
            args_text=text,
            args_digest=hashlib.sha256(text.encode()).hexdigest(),
            args_redacted=args if shown_args is None else shown_args,
            schema_digest=schema_digest,
            idempotency_key=f"key-{number}",
        )
        row = Interrupt(
            project=self.project,
            run=run,
            tool_call=call,
            kind=kind,
            digest=gate.digest(tool, text, schema_digest),
            risk=risk,
            requester_may=defaults(Risk(risk)).requester_may,
            reason=reason,
            expires_at=clock.now() + expires_in,
        )
        if ruled:
            [under] = policies.Source().of([policies.asked_of(row)])
            row.policy, row.terms, row.required = under.policy, under.terms, under.required
            row.requester_may = under.requester_may
        row.save()
        return row

    def policy(self, **fields: Any) -> ApprovalPolicy:
        """A policy of the project, in force at once."""
        return ApprovalPolicy.objects.create(
            **{"project": self.project, "name": "House rule", "requester_may": True} | fields
        )


def as_actor(user: Any, via: str = "web") -> Actor:
    """The person as commands know them."""
    return Actor(user.pk, user.get_username(), via, user.is_superuser)


BROKEN = "def add(a, b):\n    return a - b\n\n\ndef double(x):\n    return add(x, x)\n"
FIXED = BROKEN.replace("a - b", "a + b")


def audited(action: str) -> list[dict[str, Any]]:
    """The audit's entries of one kind, oldest first: their facts, with actor and object."""
    return [
        {
            **json.loads(entry.payload.body),
            "actor": entry.actor_name,
            "object": entry.object_id,
        }
        for entry in AuditEntry.objects.filter(action=action).order_by("id")
    ]

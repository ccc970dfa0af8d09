"""One project with its people and an agent, and a client that speaks the API as one of them."""

from __future__ import annotations

import itertools
import json
from typing import Any

from django.contrib.auth.models import User
from django.test import Client

from runtime_core.models import (
    Agent,
    AgentVersion,
    ApiToken,
    Checkpoint,
    Interrupt,
    Membership,
    Project,
    Run,
    Thread,
    ToolCall,
)

_numbers = itertools.count(1)


class Room:
    """Ana operates, Bo approves, Vi views, Cy is a stranger; `fixer` is the agent."""

    def __init__(self) -> None:
        self.project = project(f"room-{next(_numbers)}")
        self.ana = self._person("ana", "operator")
        self.bo = self._person("bo", "approver")
        self.vi = self._person("vi", "viewer")
        self.cy = self._person("cy")
        self.agent = agent(self.project, "fixer")

    def run(self, status: str = "pending", **fields: Any) -> Run:
        """A run without a worker, as a row."""
        return make_run(self.agent, self.ana, status, **fields)

    def _person(self, name: str, *roles: str) -> User:
        user = User.objects.create_user(f"{name}{next(_numbers)}", password="pw")
        for role in roles:
            Membership.objects.create(project=self.project, user=user, role=role)
        return user


class Api:
    """The API as one person with a token: answers are (status, parsed body)."""

    def __init__(self, user: User, within: Project | None = None) -> None:
        _, self.token = ApiToken.issue(user, within)
        self.client = Client(enforce_csrf_checks=True)
        self.headers = {"Authorization": f"Bearer {self.token}"}

    def get(self, path: str, **query: Any) -> tuple[int, Any]:
        return parsed(self.client.get(f"/api/v1{path}", query, headers=self.headers))

    def post(self, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        raw = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body)
        return parsed(self.send(path, raw, **headers))

    def send(self, path: str, raw: bytes | str, **headers: str) -> Any:
        given = {**self.headers, **{name.replace("_", "-"): text for name, text in headers.items()}}
        return self.client.post(
            f"/api/v1{path}", raw, content_type="application/json", headers=given
        )


def parsed(response: Any) -> tuple[int, Any]:
    if response.status_code >= 400:
        assert response["Content-Type"].startswith("application/problem+json"), response.content
        assert response.json()["status"] == response.status_code
    return response.status_code, response.json()


def project(slug: str) -> Project:
    return Project.objects.create(slug=slug, name=slug.title())


def agent(within: Project, name: str) -> Agent:
    """An agent with one version."""
    made = Agent.objects.create(project=within, name=name)
    definition = {"name": name, "engine": "react", "script": "none.yaml", "tools": ["read_file"]}
    made.current = version(made, definition)
    made.save()
    return made


def version(of: Agent, definition: dict[str, Any]) -> AgentVersion:
    return AgentVersion.objects.create(agent=of, number=1, definition=definition, digest="d" * 64)


def make_run(of: Agent, by: User, status: str = "pending", **fields: Any) -> Run:
    assert of.current
    thread = Thread.objects.create(project=of.project, created_by=by)
    defaults = {
        "title": "Fix it",
        "input": "Fix it",
        "max_steps": 50,
        "max_tokens": 1000,
        "max_cost_microusd": 5_000_000,
        "deadline_s": 60,
    }
    return Run.objects.create(
        project=of.project,
        thread=thread,
        agent=of,
        agent_version=of.current,
        created_by=by,
        status=status,
        **{**defaults, **fields},
    )


def tool_call(run: Run, position: int = 0, **fields: Any) -> ToolCall:
    """A row of the ledger with a raw argument that must never be shown."""
    defaults = {
        "step": 0,
        "call_id": f"c{position}",
        "tool": "write_file",
        "effect": "idempotent",
        "risk": "medium",
        "status": "awaiting_approval",
        "args_text": '{"key": "RAW-SECRET"}',
        "args_digest": "a" * 64,
        "args_redacted": {"key": "[redacted]"},
        "schema_digest": "s" * 64,
        "idempotency_key": f"{run.id}-{position}",
        "result_text": "RAW-RESULT",
    }
    return ToolCall.objects.create(run=run, position=position, **{**defaults, **fields})


def interrupt(call: ToolCall, **fields: Any) -> Interrupt:
    from runtime_core import clock

    defaults = {"kind": "tool_approval", "digest": "i" * 64, "risk": "medium", "reason": "Writes."}
    return Interrupt.objects.create(
        project=call.run.project,
        run=call.run,
        tool_call=call,
        expires_at=clock.now(),
        **{**defaults, **fields},
    )


def checkpoint(run: Run, step: int) -> Checkpoint:
    return Checkpoint.objects.create(
        run=run,
        step=step,
        epoch=1,
        reason="step",
        schema_version=1,
        messages=step,
        state={"inner": True},
        digest="c" * 64,
    )

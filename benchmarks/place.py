"""Where everything is measured: a project with people and agents on throw-away services."""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import yaml

from config.services.postgres import DATABASE, PORT, ROLE
from config.supervisor.stack import Stack
from config.throwaway import throwaway_stack

_WORDS = ("amber", "river", "stone", "quiet", "north", "lamp", "winter", "field", "copper", "glass")


@dataclass
class Place:
    """Services, one project, an operator with a token, an approver with a token."""

    stack: Stack
    project: Any
    operator: Any
    approver: Any
    tokens: dict[str, str] = field(default_factory=dict)
    parts_run: bool = False

    def agent(
        self, name: str, turns: list[dict[str, Any]], *, chunk_ms: int = 0, **more: Any
    ) -> str:
        """An agent that plays these turns as fast as they can be read."""
        from runtime_core import commands

        script = self.stack.folder.root / f"{name}.yaml"
        script.write_text(yaml.safe_dump({"name": name, "chunk_ms": chunk_ms, "turns": turns}))
        definition = {
            "name": name,
            "script": str(script),
            "instructions": "Play the script.",
            "tools": ["do_nothing", "do_if_agreed", "run_command"],
            "permissions": {"*": "allow", "do_if_agreed": "ask"},
            "limits": {"max_steps": 1_000, "max_tokens": 50_000_000},
            **more,
        }
        commands.apply_agent(actor(self.operator), self.project, definition)
        return name

    def start(self, agent: str) -> Any:
        """A new run of that agent."""
        from runtime_core import commands

        return commands.start_run(
            actor(self.operator), project=self.project, agent=agent, input="Go."
        )

    def start_parts(self) -> None:
        """Web, worker and beat, if they do not run yet; return when they answer."""
        if self.parts_run:
            return
        self.stack.start_parts()
        self.stack.wait_until_ready()
        self.parts_run = True
        agent = self.agent("first", [{"text": "Ready."}])
        run = self.start(agent)
        wait_until(lambda: status_of(run.id) == "completed", 60, "the worker takes a run")

    @property
    def origin(self) -> str:
        return f"127.0.0.1:{self.stack.port}"

    @property
    def sockets(self) -> Path:
        return self.stack.folder.sockets

    def connect(self) -> psycopg.Connection[Any]:
        """A plain connection to the measured database."""
        return psycopg.connect(
            host=str(self.sockets), port=PORT, user=ROLE, dbname=DATABASE, autocommit=True
        )


@contextmanager
def place() -> Iterator[Place]:
    """Set everything up, and leave nothing behind."""
    scripted = {"TOOL_MODULES": "benchmarks.tools", "INTERLOCK_MODEL": ""}
    with throwaway_stack("interlock-bench-", **scripted) as stack:
        from django.contrib.auth.models import User
        from django.db import connections

        from runtime_core import ports
        from runtime_core.models import ApiToken, Membership, Project, Role

        project = Project.objects.create(slug="bench", name="Benchmark")
        people, tokens = [], {}
        for name, role in (("operator", Role.OPERATOR), ("approver", Role.APPROVER)):
            user = User.objects.create_user(name)
            Membership.objects.create(project=project, user=user, role=role)
            tokens[name] = ApiToken.issue(user, name="benchmark")[1]
            people.append(user)
        try:
            yield Place(stack, project, *people, tokens)
        finally:
            ports.spans().flush()
            connections.close_all()


def react(turns: int) -> list[dict[str, Any]]:
    """A conversation of so many tool calls (50 bytes of text, 200 bytes of result each) and an answer."""
    words = itertools.cycle(_WORDS)
    script: list[dict[str, Any]] = []
    for number in range(turns):
        text = " ".join(itertools.islice(words, 9))[:50].ljust(50, ".")
        args = {"number": number, "words": " ".join(itertools.islice(words, 3))}
        script.append({"text": text, "calls": [{"tool": "do_nothing", "args": args}]})
    return [*script, {"text": "All is done."}]


def actor(user: Any) -> Any:
    """The person as the runtime's commands want to know them."""
    from runtime_core.values import Actor

    return Actor(user.pk, user.username)


def status_of(run_id: uuid.UUID) -> str:
    """The run's status as it is stored now."""
    from runtime_core.models import Run

    return str(Run.objects.values_list("status", flat=True).get(id=run_id))


def wait_until(
    condition: Callable[[], Any], seconds: float, what: str, every: float = 0.002
) -> Any:
    """The condition's value as soon as it is true; TimeoutError after `seconds`."""
    until = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > until:
            raise TimeoutError(f"not within {seconds:g} s: {what}")
        time.sleep(every)
    return value

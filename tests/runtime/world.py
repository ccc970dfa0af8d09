"""The people and things that tests of the runtime start from."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection

from approvals.deciding.commands import Opinion, decide
from runtime_core import commands
from runtime_core.loop.drive import advance
from runtime_core.models import Event, Interrupt, Membership, Project, Role, Run, ToolCall
from runtime_core.scheduling import reconcile
from runtime_core.values import Actor

_numbers = itertools.count(1)


@dataclass(frozen=True)
class World:
    """One project: alice operates, bob approves, carol is in no project, victor views."""

    project: Project
    alice: User
    bob: User
    carol: User
    victor: User

    def agent(self, turns: list[dict[str, Any]], *, name: str = "tester", **more: Any) -> str:
        """An agent that plays these turns; permissions default to allow for all tools of the tests."""
        chunk_ms = more.pop("chunk_ms", 0)
        definition: dict[str, Any] = {
            "name": name,
            "script": str(script(turns, chunk_ms=chunk_ms)),
            "instructions": "Do as the script says.",
            "tools": [
                "ledger_append",
                "note",
                "look",
                "wait_for_stop",
                "fail",
                "say",
                "charge",
                "lose_connection",
                "record",
                "ask_human",
                "order",
                "book",
                "hold_seat",
            ],
            "permissions": {"*": "allow", "ledger_append": "ask"},
        }
        if "model" in more:
            del definition["script"]
        definition.update(more)
        commands.apply_agent(actor(self.alice), self.project, definition)
        return name

    def start(self, turns: list[dict[str, Any]], *, input: str = "go", **more: Any) -> Run:
        """A run of a fresh agent that plays these turns."""
        limits = more.pop("limits", None)
        thread_id = more.pop("thread_id", None)
        name = more.pop("name", f"agent-{next(_numbers)}")
        agent = self.agent(turns, name=name, **more)
        return self.run_of(agent, input=input, limits=limits, thread_id=thread_id)

    def run_of(self, agent: str, *, input: str = "go", **more: Any) -> Run:
        """A new run of that agent, asked for by alice."""
        return commands.start_run(
            actor(self.alice), project=self.project, agent=agent, input=input, **more
        )


def make_world() -> World:
    """A new project with its people."""
    number = next(_numbers)
    project = Project.objects.create(slug=f"p{number}", name=f"Project {number}")
    people = [
        User.objects.create_user(f"{name}{number}", password="pw")
        for name in ("alice", "bob", "carol", "victor")
    ]
    for user, role in zip(people, (Role.OPERATOR, Role.APPROVER, None, Role.VIEWER), strict=True):
        if role:
            Membership.objects.create(project=project, user=user, role=role)
    return World(project, *people)


def actor(user: User) -> Actor:
    return Actor(user.pk, user.username)


def script(turns: list[dict[str, Any]], **more: Any) -> Path:
    """A file with these turns."""
    folder = Path(settings.DATA_DIR) / "scripts"
    folder.mkdir(exist_ok=True, parents=True)
    path = folder / f"script-{next(_numbers)}.yaml"
    path.write_text(yaml.safe_dump({"name": path.stem, "turns": turns, **more}))
    return path


def call(tool: str, **args: Any) -> dict[str, Any]:
    return {"tool": tool, "args": args}


def drive(run: Run, worker: str = "test") -> Run:
    """Claim and drive the run in this thread until it is let go; the run as it is then."""
    assert advance(worker, run.id), f"{run.status} cannot be claimed"
    return fresh(run)


def expire_lease(run: Run) -> None:
    """The worker is gone for longer than its lease; then what beat does every two seconds."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE run_lease SET until = clock_timestamp() - interval '1 s' WHERE run_id = %s",
            [run.id],
        )
    reconcile.reconcile()


def together(*bodies: Callable[[], Any]) -> list[Any]:
    """Run these at the same moment, each on a thread and connection of its own; results or exceptions, in order."""
    barrier = threading.Barrier(len(bodies))

    def one(body: Callable[[], Any]) -> Any:
        try:
            barrier.wait(10)
            return body()
        except Exception as error:  # noqa: BLE001 - the test looks at it
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(len(bodies)) as pool:
        return list(pool.map(one, bodies))


def fresh(run: Run) -> Run:
    return Run.objects.select_related("agent", "agent_version", "created_by").get(id=run.id)


def events(run: Run, *types: str) -> list[Event]:
    rows = list(Event.objects.filter(run=run).order_by("seq"))
    assert [e.seq for e in rows] == list(range(1, len(rows) + 1))
    return [e for e in rows if not types or e.type in types]


def open_interrupts(run: Run) -> list[Interrupt]:
    return list(Interrupt.objects.filter(run=run, status="open").order_by("id"))


def decide_on(interrupt: Interrupt, user: User, action: str = "approve", **more: Any) -> Interrupt:
    opinion = Opinion(action=action, version=interrupt.version, digest=interrupt.digest, **more)
    return decide(actor(user), interrupt.id, opinion)


def calls(run: Run) -> list[ToolCall]:
    return list(ToolCall.objects.filter(run=run).order_by("step", "position"))


def wait_until(
    condition: Callable[[], Any], seconds: float = 20, what: str = "", every: float = 0.02
) -> Any:
    """The condition's value as soon as it is true; AssertionError after `seconds`."""
    until = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < until, f"not within {seconds} s: {what or condition}"
        time.sleep(every)


def texts(run: Run) -> dict[int, str]:
    """The text of each step from its deltas, checked to be contiguous."""
    found: dict[int, str] = {}
    for event in events(run, "text_delta"):
        so_far = found.get(event.data["step"], "")
        assert event.data["offset"] == len(so_far)
        found[event.data["step"]] = so_far + event.data["text"]
    return found


def statuses(run: Run) -> list[tuple[Any, str, str]]:
    """The run_status events as (from, to, cause), checked to be a chain."""
    moves = [(e.data["from"], e.data["to"], e.data["cause"]) for e in events(run, "run_status")]
    for before, after in itertools.pairwise(moves):
        assert before[1] == after[0]
    return moves


def dump(items: Iterable[Any]) -> str:
    return json.dumps(list(items), default=str)

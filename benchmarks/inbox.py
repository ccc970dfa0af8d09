"""The inbox with ten thousand open requests: the time that the server takes for a page, and for a decision."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import time
from collections.abc import Iterator
from typing import Any

from benchmarks.place import Place, actor
from benchmarks.table import Figure

PROJECTS = 4
BATCH = 1_000
ADDRESSES = {
    "what is for me": "/inbox/?view=mine",
    "all that is open": "/inbox/?view=all",
    "filtered by risk": "/inbox/?view=mine&risk=high",
    "filtered by tool, the highest risk first": "/inbox/?view=mine&tool=do_if_agreed&sort=risk",
    "all that is open, newest first": "/inbox/?view=all&sort=newest",
    "another page's frame, with its count": "/notifications/",
}


def crowded(place: Place, requests: int, times: int) -> Iterator[Figure]:
    """Pages and decisions of an approver of four projects who may decide on every one of them."""
    from django.test import Client

    asked = _ask(place, requests)
    client = Client(SERVER_NAME="localhost")
    client.force_login(place.approver)
    for name, address in ADDRESSES.items():
        client.get(address)  # templates and plans are made once
        took, statements = zip(*(_timed(client.get, address) for _ in range(times)), strict=True)
        label = f"inbox, {requests:,} open: {name} ({statements[-1]} statements)"
        yield Figure.latency(label, took, "100")
    _decide(client, asked[0])
    took, statements = zip(*(_decide(client, one) for one in asked[1 : times + 1]), strict=True)
    label = f"inbox, {requests:,} open: a decision ({statements[-1]} statements)"
    yield Figure.latency(label, took, "50")


def _decide(client: Any, asked: Any) -> tuple[float, int]:
    form = {"action": "approve", "version": asked.version, "digest": asked.digest}
    return _timed(client.post, f"/inbox/{asked.id}/", form)


def _timed(send: Any, *args: Any) -> tuple[float, int]:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as captured:
        began = time.perf_counter()
        answer = send(*args)
        took = time.perf_counter() - began
    assert answer.status_code in (200, 302), answer.status_code
    return took, len(captured)


# ── Rows as runs that ask leave them, without the runs ──────────────────────────────────────────


def _ask(place: Place, count: int) -> list[Any]:
    from runtime_core import commands
    from runtime_core.models import Agent, Membership, Project, Role

    asked: list[Any] = []
    for number in range(PROJECTS):
        project = Project.objects.create(slug=f"inbox-{number}", name=f"Inbox {number}")
        Membership.objects.create(project=project, user=place.approver, role=Role.APPROVER)
        definition = {"name": "asks", "script": "none", "instructions": "-", "tools": []}
        commands.apply_agent(actor(place.operator), project, definition)
        agent = Agent.objects.get(project=project)
        for start in range(0, count // PROJECTS, BATCH):
            asked += _batch(place, agent, start, min(BATCH, count // PROJECTS - start))
    with place.connect() as connection:
        connection.execute("ANALYZE")
    return asked


def _batch(place: Place, agent: Any, start: int, count: int) -> list[Any]:
    from runtime_core import clock
    from runtime_core.models import Interrupt, Run, Thread, ToolCall
    from runtime_core.tools import gate
    from runtime_core.tools.registry import registry

    of = {"project_id": agent.project_id, "created_by": place.operator}
    limits = {"max_steps": 9, "max_tokens": 9, "max_cost_microusd": 9, "deadline_s": 3_600}
    schema = registry()["do_if_agreed"].spec.digest
    threads = Thread.objects.bulk_create(Thread(**of) for _ in range(count))
    runs = Run.objects.bulk_create(
        Run(
            thread=thread, agent=agent, agent_version=agent.current, status="interrupted", title="Ask",
            input="Ask", started_at=clock.now(), stopped_at=clock.now(), **of, **limits,
        )
        for thread in threads
    )  # fmt: skip
    calls, asked = [], []
    for number, run in enumerate(runs, start=start):
        args = {"number": number, "words": "amber river stone"}
        text = json.dumps(args)
        risk = ("low", "medium", "high")[number % 3]
        call = ToolCall(
            run=run, step=1, position=0, call_id=f"c{number}", tool="do_if_agreed", effect="once",
            risk=risk, status="awaiting_approval", args_text=text, args_redacted=args,
            args_digest=hashlib.sha256(text.encode()).hexdigest(), schema_digest=schema,
            idempotency_key=hashlib.sha256(f"{run.id}".encode()).hexdigest(),
        )  # fmt: skip
        calls.append(call)
        asked.append(
            Interrupt(
                project_id=agent.project_id, run=run, tool_call=call, kind="tool_approval", risk=risk,
                digest=gate.digest("do_if_agreed", text, schema), reason="Asked about.",
                requester_may=risk != "high", expires_at=clock.now() + dt.timedelta(hours=1, seconds=number),
            )
        )  # fmt: skip
    ToolCall.objects.bulk_create(calls)
    return Interrupt.objects.bulk_create(asked)

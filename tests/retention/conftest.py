"""Old runs with a bit of everything, and what is left of them."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from runtime_core import clock
from runtime_core.models import Checkpoint, Event, Message, Run, Step, Thread
from tests.pages.world import World
from traces.models import RetentionPolicy, SpanPayload, SpanRow


@pytest.fixture
def world(db: None) -> World:
    return World()


def old(world: World, days: float, **fields: Any) -> Run:
    """A run that ended so many days ago, with events, a span, checkpoints, a message and a request."""
    run = world.run("completed", ended_at=clock.now() - dt.timedelta(days=days), **fields)
    world.event(run, "step_start", {"kind": "model", "index": 0}, 0)
    for offset, text in enumerate("abc"):
        world.event(run, "text_delta", {"step": 0, "offset": offset, "text": text}, 0)
    world.event(run, "progress", {"message": "half"}, 1)
    world.event(run, "progress", {"message": "all"}, 1)
    world.event(run, "done", {"status": "completed", "output": "abc"})
    world.span(run, input={"a": 1})
    world.step(run, 0)
    for step in range(3):
        Checkpoint.objects.create(
            run=run, step=step, epoch=1, reason="round", schema_version=1, messages=0, state={},
            digest="0" * 64, pinned=step == 0,
        )  # fmt: skip
    Message.objects.create(thread=run.thread, run=run, position=0, step=-1, body='"hello"')
    world.ask(run, status="approved", decided_at=clock.now())
    return run


def left(run: Run) -> dict[str, int]:
    """How many rows each class still has of the run."""
    return {
        "events": Event.objects.filter(run_id=run.id).count(),
        "payloads": SpanPayload.objects.filter(span__run_id=run.id).count(),
        "spans": SpanRow.objects.filter(run_id=run.id).count(),
        "checkpoints": Checkpoint.objects.filter(run_id=run.id).count(),
        "runs": Run.objects.filter(id=run.id).count(),
        "threads": Thread.objects.filter(id=run.thread_id).count(),
        "steps": Step.objects.filter(run_id=run.id).count(),
    }


ALL = {
    "events": 7, "payloads": 1, "spans": 1, "checkpoints": 3, "runs": 1, "threads": 1, "steps": 1,
}  # fmt: skip
NOTHING = dict.fromkeys(ALL, 0)


def policy(data_class: str, days: int | None, **fields: Any) -> RetentionPolicy:
    """A policy as the admin saves it."""
    row = RetentionPolicy(data_class=data_class, days=days, **fields)
    row.full_clean()
    row.save()
    return row

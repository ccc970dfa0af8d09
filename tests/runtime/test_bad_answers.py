"""What a model says wrongly is told to it, a bounded number of times; what is cut off is never executed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest

from runtime_core.limits import limits
from runtime_core.loop import model_step, retry
from tests.gateway import provider as wire
from tests.gateway.provider import Provider, Reply
from tests.runtime.tools import effects
from tests.runtime.world import (
    World,
    call,
    calls,
    decide_on,
    drive,
    events,
    open_interrupts,
    statuses,
    texts,
)

MODEL = "openai-chat:gpt-5-mini"
BAD = {
    "empty": "",
    "null": "null",
    "text": '"foo"',
    "list": "[1]",
    "cut": '{"text":"a"',
    "two": '{"text":"a"}{"text":"b"}',
    "comma": '{"text":"a",}',
    "quotes": "{'text':'a'}",
    "newline": '{"text":"a\nb"}',
    "nul": '{"text":"a"}\x00',
    "deep": '{"text":' + "[" * 10_000 + "]" * 10_000 + "}",
    "twice": '{"text":"a","text":"b"}',
    "other": '{"txt":"a"}',
    "type": '{"text":1}',
}


def raw(text: str, tool: str = "note") -> dict[str, Any]:
    return {"tool": tool, "raw_args": text}


def test_f2_arguments_that_cannot_be_read_are_one_tool_error(world: World) -> None:
    for name, text in BAD.items():
        run = drive(world.start([{"calls": [raw(text)]}, {"text": "I see."}]))

        assert effects() == [], name
        assert run.status == "completed", (name, run.error)
        [refused] = calls(run)
        assert (refused.status, refused.error_code) == ("failed", "invalid_arguments"), name
        [told] = events(run, "tool_call_result")
        assert told.data["status"] == "failed", name
        assert len(str(told.data)) < 5_000, name


@pytest.mark.parametrize("tool", ["no_such_tool", "note now"])
def test_f2_an_unknown_tool_is_one_tool_error(world: World, tool: str) -> None:
    run = drive(world.start([{"calls": [raw("{}", tool)]}, {"text": "I see."}]))
    assert run.status == "completed", run.error
    assert (calls(run)[0].status, calls(run)[0].error_code) == ("failed", "unknown_tool")
    assert "note" in (calls(run)[0].result_text or ""), "it is told what there is"


def test_f2_five_in_a_row_end_the_run_with_a_reason(world: World) -> None:
    turns = [{"calls": [raw("[1]")]} for _ in range(8)]
    run = drive(world.start(turns))

    assert run.status == "failed"
    assert run.error and run.error["code"] == "malformed_calls"
    assert len(calls(run)) == 5
    assert effects() == []
    assert statuses(run)[-1] == ("running", "failed", "error")


def test_f2_one_good_call_in_between_starts_the_count_anew(world: World) -> None:
    bad, good = {"calls": [raw("[1]")]}, {"calls": [call("look")]}
    run = drive(world.start([bad, bad, bad, bad, good, bad, bad, bad, bad, {"text": "sorry"}]))
    assert run.status == "completed"


def test_f2_a_run_that_is_given_up_asks_nobody_and_begins_nothing(world: World) -> None:
    bad = [raw("[1]") for _ in range(5)]
    turn = {"calls": [call("ledger_append", text="a"), call("note", text="n"), *bad]}
    run = drive(world.start([turn, {"text": "x"}]))

    assert run.status == "failed"
    assert open_interrupts(run) == []
    assert effects() == []
    assert {c.status for c in calls(run)} == {"cancelled", "failed"}
    again = drive(world.start([{"text": "fine"}], thread_id=run.thread_id))
    assert again.status == "completed"


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    """A strict provider whose failures are tried again at once."""
    soon = dataclasses.replace(limits(), backoff_base_seconds=0.01, model_retries=2)
    for module in (retry, model_step):
        monkeypatch.setattr(module, "limits", lambda: soon)
    with Provider() as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield running


def test_f2_arguments_beyond_their_bound_are_one_tool_error(
    world: World, provider: Provider
) -> None:
    head = {
        "index": 0,
        "id": "c1",
        "type": "function",
        "function": {"name": "note", "arguments": ""},
    }
    piece = '{"text":"' + "a" * 1_200_000 + '"}'
    huge = wire.stream(
        [wire.tool_delta(head), wire.tool_delta({"index": 0, "function": {"arguments": piece}})],
        "tool_calls",
    )
    provider.then(huge, wire.text("I see."))
    run = drive(world.start([], model=MODEL))
    assert run.status == "completed", run.error
    assert (calls(run)[0].status, calls(run)[0].error_code) == ("failed", "invalid_arguments")
    assert effects() == []
    assert sum(len(str(e.data)) for e in events(run)) < 20_000


def broken(kind: str) -> Reply:
    """A stream that does not end as it should."""
    half = wire.text("Half an answer that nobody should keep").frames[:4]
    whole = wire.calls(("c1", "note", '{"text": "never"}')).frames
    complete_call = whole[: len(whole) - 3]
    error = {"error": {"message": "overloaded", "type": "overloaded_error", "code": None}}
    return {
        "error event": Reply(
            (
                *half,
                'event: error\ndata: {"type":"error","error":'
                '{"type":"overloaded_error","message":"overloaded"}}',
            )
        ),
        "no end": Reply(half),
        "call, then error": Reply((*complete_call, error)),
        "error in the stream": Reply((*half, error)),
        "reset": Reply(half).but(ending="reset"),
    }[kind]


@pytest.mark.parametrize(
    "kind", ["error event", "no end", "call, then error", "error in the stream", "reset"]
)
def test_f5_a_broken_stream_is_tried_again_and_its_text_counts_once(
    world: World, provider: Provider, kind: str
) -> None:
    provider.then(broken(kind), wire.text("The whole answer."))
    run = drive(world.start([], model=MODEL))

    assert run.status == "completed", run.error
    assert run.output == "The whole answer."
    assert len(provider.requests) == 2
    assert effects() == [] and calls(run) == []
    assert list(texts(run).values())[-1] == "The whole answer."
    assert len(set(texts(run))) == len(texts(run))
    [error] = events(run, "error")
    assert error.data["retryable"] is True
    said = [m["content"] for m in provider.requests[1]["messages"] if m["role"] == "assistant"]
    assert said == [], "what was cut off is not told to the model as its own answer"


def test_f5_a_stream_that_never_ends_well_fails_the_run_within_its_budget(
    world: World, provider: Provider
) -> None:
    provider.then(broken("no end"))
    run = drive(world.start([], model=MODEL))
    assert run.status == "failed"
    assert len(provider.requests) == 3
    assert run.error and run.error["code"]
    assert run.output is None


def test_f5_bytes_in_any_pieces_are_a_normal_answer(world: World, provider: Provider) -> None:
    provider.then(wire.text("Grüße, 世界").but(packet="byte", newline="\r\n", comments=True))
    run = drive(world.start([], model=MODEL))
    assert run.output == "Grüße, 世界"
    assert len(provider.requests) == 1


def test_d8_an_effect_whose_answer_was_lost_is_not_repeated(world: World) -> None:
    run = drive(world.start([{"calls": [call("lose_connection")]}, {"text": "ok"}]))

    assert effects() == ["lost"]
    assert run.status == "interrupted"
    [interrupt] = open_interrupts(run)
    assert interrupt.kind == "outcome_unknown"
    assert calls(run)[0].status == "unknown"
    decide_on(interrupt, world.bob, "respond", response="it happened")
    run = drive(run)
    assert run.status == "completed"
    assert effects() == ["lost"]


def test_d8_the_calls_beside_an_unknown_one_wait_for_the_person(world: World) -> None:
    turn = {"calls": [call("lose_connection"), call("note", text="after")]}
    run = drive(world.start([turn, {"text": "ok"}]))
    assert run.status == "interrupted"
    assert effects() == ["lost"]
    decide_on(open_interrupts(run)[0], world.bob, "reject", reason="stop")
    run = drive(run)
    assert run.status == "failed"
    assert effects() == ["lost"]


def test_a_secret_as_the_name_of_a_tool_is_shown_nowhere(world: World) -> None:
    secret = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"

    run = drive(world.start([{"calls": [raw("{}", secret)]}, {"text": "I see."}]))

    assert (run.status, calls(run)[0].error_code) == ("completed", "unknown_tool")
    assert secret not in calls(run)[0].tool
    assert not [event.type for event in events(run) if secret in str(event.data)]

"""Case F2: arguments are the model's exact words, and a cut-off response has no calls."""

from __future__ import annotations

import json

import pytest

from runtime_core.gateway.messages import calls_of, dump, load, tool_results, user_request
from tests.gateway.conftest import ask, call
from tests.gateway.provider import Provider, calls, text

MALFORMED = [
    "",
    "null",
    '"foo"',
    "[1]",
    '{"path":"a"',
    '{"path":"a"}{"path":"b"}',
    '{"a":1,}',
    "{'a':1}",
    '{"content":"a\nb"}',
    '{"path":"a"}\x00',
    '{"path":"a","path":"b"}',
    "[" * 10_000,
    '{"path":"\ud800"}',
    json.dumps({"content": "x" * 200_000}),
]


@pytest.mark.parametrize("arguments", MALFORMED, ids=range(len(MALFORMED)))
def test_f2_malformed_arguments_come_as_they_are_and_replay_as_json(
    provider: Provider, arguments: str
) -> None:
    deltas = calls(("c1", "read", arguments))
    if len(arguments) > 10_000 or "\ud800" in arguments:
        deltas = calls(("c1", "read", "")).but(frames=_in_one_piece(arguments))
    provider.then(deltas, text("I see."))
    asked = user_request("Go")

    _, first = ask(call(asked))
    stored = load(dump(first.response))
    told = tool_results([("c1", "read", "invalid_arguments", "failed")])
    _, second = ask(call(asked, stored, told))

    assert first.calls[0].args_text == arguments.replace("\ud800", "\ufffd")
    assert stored == first.response
    assert second.text == "I see."
    assert provider.refused == []


def test_f2_a_length_finish_discards_all_calls_of_the_response(provider: Provider) -> None:
    cut = calls(
        ("c1", "read", '{"path":"a"}'),
        ("c2", "read", '{"path":'),
        content="Both.",
        finish_reason="length",
    )
    provider.then(cut, text("Shorter."))
    asked = user_request("Go")

    _, first = ask(call(asked))
    _, second = ask(call(asked, load(dump(first.response)), user_request("You were cut off.")))

    assert first.finish_reason == "length"
    assert first.calls == () == calls_of(first.response)
    assert first.text == "Both."
    assert second.text == "Shorter."
    assert provider.refused == []


def test_f2_complete_arguments_with_a_length_finish_are_discarded_too(provider: Provider) -> None:
    provider.then(calls(("c1", "read", '{"path":"a"}'), finish_reason="length"))

    _, answer = ask(call())

    assert answer.calls == ()
    assert answer.response.metadata == {"dropped_calls": ["read"]}


@pytest.mark.parametrize("name", ["no_such_tool", "read file", "read/é", "x" * 100])
def test_f2_a_strange_tool_name_is_reported_and_replays(provider: Provider, name: str) -> None:
    provider.then(calls(("c1", name, "{}")), text("Sorry."))
    asked = user_request("Go")

    _, first = ask(call(asked))
    told = tool_results([("c1", name, "unknown_tool", "failed")])
    _, second = ask(call(asked, first.response, told))

    assert first.calls[0].tool == name
    assert second.text == "Sorry."
    assert provider.refused == []


def _in_one_piece(arguments: str) -> tuple[object, ...]:
    """The frames of one call whose arguments come at once, escaped as ASCII."""
    frames = calls(("c1", "read", "?")).frames
    return tuple(
        frame if isinstance(frame, str) else json.dumps(frame).replace('"?"', json.dumps(arguments))
        for frame in frames
    )

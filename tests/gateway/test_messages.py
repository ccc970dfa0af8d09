"""Messages survive storage exactly, and a history is in an order providers accept (case D5)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
)

from runtime_core.gateway.messages import (
    NO_RESULT,
    answers_every_call,
    calls_of,
    dump,
    load,
    paired,
    tool_results,
    user_request,
)
from runtime_core.values import ProposedCall
from tests.gateway.conftest import ask, call
from tests.gateway.provider import Provider, calls, text


def said(*call_ids: str, words: str = "") -> ModelResponse:
    parts: list[Any] = [TextPart(words)] if words else []
    return ModelResponse(parts=[*parts, *(ToolCallPart("read", "{}", c) for c in call_ids)])


def result(*call_ids: str) -> ModelRequest:
    return tool_results([(c, "read", f"of {c}", "success") for c in call_ids])


ANY_TEXT = st.text(st.characters(exclude_categories=()))

MESSAGES: list[ModelMessage] = [
    user_request("Grüße 🚀", "Be brief."),
    user_request("NUL \x00, a lone \ud800 surrogate, and the six letters \\u0000"),
    tool_results(
        [("c1", "read", {"a": [1, None, "x\x00"]}, "failed"), ("c2", "read", "no", "denied")]
    ),
    ModelResponse(
        parts=[
            ThinkingPart("Hm.", signature="c2ln", provider_name="openai"),
            TextPart("Reading."),
            ToolCallPart("read", '{"path":"a"}\x00', "c1"),
            ToolCallPart("read", "", "c2"),
        ],
        provider_details={"finish_reason": "tool_calls"},
        metadata={"dropped_calls": []},
        finish_reason="tool_call",
    ),
]


@pytest.mark.parametrize("message", MESSAGES, ids=range(len(MESSAGES)))
def test_a_message_comes_back_from_storage_as_it_was(message: ModelMessage) -> None:
    stored = json.dumps(dump(message), ensure_ascii=False)

    assert load(json.loads(stored)) == message
    stored.encode("utf-8")  # no lone surrogate
    assert "\x00" not in json.loads(stored).get("ascii", "") and '\\u0000"' not in stored.replace(
        "\\\\u0000", ""
    )


@given(ANY_TEXT, ANY_TEXT)
def test_any_text_can_be_stored(words: str, args: str) -> None:
    message = ModelResponse(parts=[TextPart(words), ToolCallPart("read", args, "c1")])
    value = dump(message)

    assert load(json.loads(json.dumps(value))) == message
    if "ascii" in value:
        assert value["ascii"].isascii()


def test_an_answer_of_a_provider_comes_back_from_storage_as_it_was(provider: Provider) -> None:
    provider.then(calls(("c1", "read", "{}"), content="Reading."))

    _, answer = ask(call())

    assert load(json.loads(json.dumps(dump(answer.response)))) == answer.response


def test_calls_are_listed_in_the_models_words() -> None:
    response = ModelResponse(
        parts=[
            ToolCallPart("a", ' {"x" :1}', "1"),
            ToolCallPart("b", {"y": "é"}, "2"),
            ToolCallPart("c", None, "3"),
        ]
    )

    assert calls_of(response) == (
        ProposedCall("1", "a", ' {"x" :1}'),
        ProposedCall("2", "b", '{"y": "é"}'),
        ProposedCall("3", "c", ""),
    )


def test_tool_results_carry_their_outcome() -> None:
    parts = tool_results([("c1", "read", "x", "success"), ("c2", "read", "no", "denied")]).parts

    assert [getattr(part, "outcome", None) for part in parts] == ["success", "denied"]


U, U2 = user_request("Go"), user_request("And now?")

HISTORIES: dict[str, list[ModelMessage]] = {
    "nothing answered": [U, said("c1", "c2"), U2],
    "one of three answered": [U, said("c1", "c2", "c3"), result("c1"), U2],
    "nothing after the calls": [U, said("c1")],
    "results in two messages": [U, said("c1", "c2"), result("c2"), result("c1")],
    "the result after a user message": [U, said("c1"), U2, result("c1")],
    "a result twice": [U, said("c1"), result("c1", "c1"), said(words="Done.")],
    "a result without its call": [U, result("c9"), said(words="Done.")],
    "a result before its call": [U, result("c1"), said("c1")],
    "two interruptions": [U, said("c1"), U2, said("c2"), U],
}


@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES.keys())
def test_d5_every_call_gets_exactly_one_result_directly_after_it(
    history: list[ModelMessage],
) -> None:
    ordered = paired(history)

    assert not answers_every_call(history)
    assert answers_every_call(ordered)
    assert paired(ordered) == ordered
    assert paired(history) == ordered, "the same history gives the same messages"
    prompts = [m for m in ordered if m in (U, U2)]
    assert prompts == [m for m in history if m in (U, U2)]


def test_d5_a_history_in_order_stays_as_it_is() -> None:
    history = (U, said("c1", "c2"), result("c2", "c1"), said(words="Done."), U2)

    assert paired(history) == history


def test_d5_real_results_are_kept_and_missing_ones_claim_nothing() -> None:
    ordered = paired([U, said("c1", "c2"), result("c1"), U2])

    parts = ordered[2].parts
    assert [p.content for p in parts if isinstance(p, ToolReturnPart)] == ["of c1", NO_RESULT]
    assert [p.outcome for p in parts if isinstance(p, ToolReturnPart)] == ["success", "interrupted"]


@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES.keys())
def test_d5_a_strict_provider_takes_an_interrupted_history(
    provider: Provider, history: list[ModelMessage]
) -> None:
    provider.then(text("Where were we?"))

    _, answer = ask(call(*history))

    assert answer.text == "Where were we?"
    assert provider.refused == []

"""A conversation is cut by whole groups, whatever the limit (case F4)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from runtime_core.gateway import window
from runtime_core.gateway.messages import answers_every_call, tool_results, user_request
from runtime_core.gateway.window import fit, size_of
from tests.gateway.conftest import ask, call
from tests.gateway.provider import Provider, text

KB = 1_000
SYSTEM = ModelRequest(parts=[SystemPromptPart("You are careful.")])


def turn(number: int, results: int = 2, size: int = 8 * KB, *, thinks: bool = True) -> list[Any]:
    ids = [f"c{number}-{n}" for n in range(results)]
    parts: list[Any] = [TextPart(f"Turn {number}."), *(ToolCallPart("read", "{}", c) for c in ids)]
    if thinks:
        parts.insert(0, ThinkingPart(f"Hm {number}.", signature=f"c2ln{number}", provider_name="p"))
    said = ModelResponse(parts=parts)
    return [said, tool_results([(c, "read", f"{c}:" + "x" * size, "success") for c in ids])]


def history(turns: int = 40) -> list[ModelMessage]:
    return [SYSTEM, user_request("Do it."), *(m for n in range(turns) for m in turn(n))]


def check_sendable(sent: tuple[ModelMessage, ...], whole: list[ModelMessage]) -> None:
    """What every provider asks for, and what may never get lost."""
    assert sent
    assert answers_every_call(sent)
    parts = [part for message in sent for part in message.parts]
    assert isinstance(parts[0], SystemPromptPart) and parts[0].content == "You are careful."
    assert isinstance(parts[1], UserPromptPart), "the first that is not the system's is the user's"
    asked = [p.content for m in whole for p in m.parts if isinstance(p, UserPromptPart)]
    assert asked[-1] in [p.content for p in parts if isinstance(p, UserPromptPart)]
    kept = [m for m in sent if isinstance(m, ModelResponse)]
    all_of_them = [m for m in whole if isinstance(m, ModelResponse)]
    assert kept == all_of_them[len(all_of_them) - len(kept) :], (
        "each is sent as it is or not at all"
    )
    last = whole[-1]
    assert [p.tool_call_id for p in sent[-1].parts if isinstance(p, ToolReturnPart)] == [
        p.tool_call_id for p in last.parts if isinstance(p, ToolReturnPart)
    ]


def test_f4_at_every_limit_from_1_to_400_kb_what_is_sent_is_whole() -> None:
    whole = history()
    assert 600 * KB < size_of(whole) < 700 * KB
    lengths = []
    for limit in range(1, 401):
        sent = fit(whole, limit * KB)
        check_sendable(sent.messages, whole)
        lengths.append(len(sent.messages))
        if limit >= 3:
            assert size_of(sent.messages) <= limit * KB, limit
        if limit >= 17:
            assert sent.shrunk == 0, "results are cut only where one turn alone is too long"
    assert lengths == sorted(lengths), "more room never means less of the conversation"
    assert fit(whole, 1_000 * KB).messages == tuple(whole)


def test_f4_the_last_turn_is_whole_and_its_results_shrink_only_if_they_must() -> None:
    whole = history()

    at_20 = fit(whole, 20 * KB)
    assert at_20.messages[-2:] == tuple(whole[-2:])

    at_5 = fit(whole, 5 * KB)
    assert at_5.shrunk == 2
    contents = [str(part.content) for part in at_5.messages[-1].parts]  # type: ignore[union-attr]
    assert all(text.startswith("c39-") and "left out" in text for text in contents)

    uneven = [*history(3), *turn(9, 1, 50), *turn(10, 2, 6 * KB)]
    uneven[-1].parts[0].content = "short"  # type: ignore[union-attr, misc]
    parts = fit(uneven, 4 * KB).messages[-1].parts
    assert parts[0].content == "short", "what is short is not cut for what is long"  # type: ignore[union-attr]


def test_f4_a_strict_provider_takes_what_is_left(provider: Provider) -> None:
    provider.then(text("Fine."))
    whole = history()
    for limit in (1, 5, 20, 70):
        _, answer = ask(call(messages=fit(whole, limit * KB).messages))
        assert answer.text == "Fine."
    assert provider.refused == []
    said = provider.requests[2]["messages"]
    assert len(json.dumps(said)) < 24 * KB
    assert next(m["role"] for m in said if m["role"] != "system") == "user"


def test_f4_what_was_left_out_stays_left_out_until_there_is_need_again() -> None:
    whole = history(10)
    room = 100 * KB
    first = fit(whole, room)
    assert first.cut > 0
    again = [*whole, *turn(10)]
    second = fit(again, room, first.cut)
    assert second.cut == first.cut, "the beginning of what is sent stays the same for a while"
    assert second.messages[:2] == first.messages[:2]
    while second.cut == first.cut:
        again += turn(len(again))
        second = fit(again, room, second.cut)
    assert second.cut > first.cut
    check_sendable(second.messages, again)


def test_f4_a_later_request_of_the_thread_is_the_one_that_is_kept() -> None:
    whole = [*history(5), user_request("And now this."), *(m for n in range(5, 9) for m in turn(n))]
    sent = fit(whole, 30 * KB).messages
    asked = [p.content for p in sent[0].parts if isinstance(p, UserPromptPart)]
    assert asked[0] == "And now this."
    assert "Do it." not in asked
    check_sendable(sent, whole)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 5_000), st.booleans(), st.booleans()),
        min_size=1,
        max_size=12,
    ),
    st.integers(1, 60_000),
)
def test_f4_any_conversation_at_any_limit(
    shape: list[tuple[int, int, bool, bool]], limit: int
) -> None:
    whole: list[ModelMessage] = [SYSTEM, user_request("Do it.")]
    for number, (results, size, thinks, asks) in enumerate(shape):
        whole += turn(number, results, size, thinks=thinks)[: 2 if results else 1]
        if asks:
            whole.append(user_request(f"Also {number}."))
    if isinstance(whole[-1], ModelResponse):
        whole.append(user_request("Go on."))
    before = repr(whole)

    sent = fit(whole, limit)

    check_sendable(sent.messages, whole)
    assert repr(whole) == before, "what is stored is not touched"


@pytest.mark.parametrize("room", [1, 10**9])
def test_one_request_alone_is_always_sent(room: int) -> None:
    alone = [user_request("x" * 5_000)]
    assert fit(alone, room).messages == tuple(alone)


def test_a_window_is_nearly_full_before_it_is_full() -> None:
    assert window.room_of(100_000) == 320_000

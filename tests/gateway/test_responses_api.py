"""OpenAI's Responses API, which `openai:` means without a base URL, is held to the same rules."""

from __future__ import annotations

from typing import Any

import pytest

from runtime_core.errors import ModelError, ModelProtocolError, ModelRefused, ModelUnavailable
from runtime_core.values import ProposedCall
from tests.gateway.conftest import ask, call
from tests.gateway.provider import Provider, events

MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "content": [],
    "status": "in_progress",
}
CALL = {
    "id": "fc_1",
    "type": "function_call",
    "call_id": "c1",
    "name": "read",
    "arguments": "",
    "status": "in_progress",
}


def _response(status: str, **more: Any) -> Any:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_700_000_000,
        "model": "gpt-5-mini",
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "status": status,
        **more,
    }


def _text(*pieces: str) -> list[Any]:
    at = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    part = {"type": "output_text", "text": "", "annotations": []}
    return [
        {"type": "response.created", "response": _response("in_progress")},
        {"type": "response.output_item.added", "output_index": 0, "item": MESSAGE},
        {"type": "response.content_part.added", **at, "part": part},
        *(
            {"type": "response.output_text.delta", **at, "delta": piece, "logprobs": []}
            for piece in pieces
        ),
    ]


def _call(arguments: str) -> list[Any]:
    at = {"item_id": "fc_1", "output_index": 1}
    return [
        {"type": "response.output_item.added", "output_index": 1, "item": CALL},
        {"type": "response.function_call_arguments.delta", **at, "delta": arguments[:5]},
        {"type": "response.function_call_arguments.delta", **at, "delta": arguments[5:]},
        {
            "type": "response.output_item.done",
            "output_index": 1,
            "item": {**CALL, "arguments": arguments, "status": "completed"},
        },
    ]


USAGE = {
    "input_tokens": 10,
    "output_tokens": 5,
    "total_tokens": 15,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens_details": {"reasoning_tokens": 0},
}
COMPLETED = {"type": "response.completed", "response": _response("completed", usage=USAGE)}
CUT = {
    "type": "response.incomplete",
    "response": _response("incomplete", incomplete_details={"reason": "max_output_tokens"}),
}
FILTERED = {
    "type": "response.incomplete",
    "response": _response("incomplete", incomplete_details={"reason": "content_filter"}),
}
FAILED = {
    "type": "response.failed",
    "response": _response("failed", error={"code": "server_error", "message": "Oops"}),
}

MODEL = "openai-responses:gpt-5-mini"


def test_it_streams_text_and_calls(provider: Provider) -> None:
    provider.then(events(*_text("Read", "ing."), *_call('{"path":"a"}'), COMPLETED))

    streamed, answer = ask(call(model=MODEL))

    assert streamed == answer.text == "Reading."
    assert answer.calls == (ProposedCall("c1", "read", '{"path":"a"}'),)
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (10, 5)


BROKEN: dict[str, tuple[list[Any], type[ModelError]]] = {
    "the end without a mark": (_text("Read"), ModelProtocolError),
    "a call, then the end": ([*_text("Read"), *_call("{}")], ModelProtocolError),
    "a failure": ([*_text("Read"), FAILED], ModelUnavailable),
    "an error event": (
        [
            *_text("Read"),
            {"type": "error", "code": "server_error", "message": "Oops", "param": None},
        ],
        ModelUnavailable,
    ),
    "the filter": ([*_text("Read"), FILTERED], ModelRefused),
}


@pytest.mark.parametrize(("sent", "kind"), BROKEN.values(), ids=BROKEN.keys())
def test_f5_a_broken_response_is_an_error(
    provider: Provider, sent: list[Any], kind: type[ModelError]
) -> None:
    provider.then(events(*sent))

    with pytest.raises(kind):
        ask(call(model=MODEL))


def test_f2_a_cut_off_response_has_no_calls(provider: Provider) -> None:
    provider.then(events(*_text("Read"), *_call('{"path":"a"}'), CUT))

    _, answer = ask(call(model=MODEL))

    assert (answer.finish_reason, answer.calls) == ("length", ())

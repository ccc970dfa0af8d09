"""Cases F5 and F7: only a complete answer counts, and a refusal is its own error."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runtime_core.errors import (
    ModelError,
    ModelProtocolError,
    ModelRefused,
    ModelRejected,
    ModelUnavailable,
    RateLimited,
    Retry,
)
from runtime_core.values import Usage
from tests.gateway.conftest import ask, call
from tests.gateway.provider import DONE, Provider, Reply, calls, chunk, stream, text

THREE = tuple(chunk({"content": word}) for word in ("One ", "two ", "three."))
CALL = tuple(frame for frame in calls(("c1", "read", '{"path":"a"}')).frames if frame != DONE)[:-2]
OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}

BROKEN: dict[str, tuple[Reply, type[ModelError]]] = {
    "an error event": (
        Reply((*THREE, f"event: error\ndata: {json.dumps(OVERLOADED)}")),
        ModelUnavailable,
    ),
    "an error event without an error object": (
        Reply((*THREE, 'event: error\ndata: {"type":"error","message":"boom"}')),
        ModelProtocolError,
    ),
    "the end without a mark": (Reply(THREE), ModelProtocolError),
    "only the end mark": (Reply((*THREE, DONE)), ModelProtocolError),
    "nothing at all": (Reply(()), ModelProtocolError),
    "a reset connection": (Reply(THREE, ending="reset"), ModelProtocolError),
    "a reset before anything": (Reply((), ending="reset"), ModelError),
    "a complete call, then an error": (Reply((*CALL, OVERLOADED)), ModelUnavailable),
    "a complete call, then the end": (Reply(CALL), ModelProtocolError),
    "an error in OpenAI's shape": (
        Reply((*THREE, {"error": {"message": "The server had an error", "type": "server_error"}})),
        ModelUnavailable,
    ),
    "an error of no known type": (
        Reply((*THREE, {"error": {"message": "Oh"}})),
        ModelProtocolError,
    ),
    "an error that is text": (Reply((*THREE, {"error": "Oh"})), ModelProtocolError),
    "a rate limit inside the stream": (
        Reply((*THREE, {"error": {"message": "Slow", "code": "rate_limit_exceeded"}})),
        RateLimited,
    ),
    "a rejection inside the stream": (
        Reply((*THREE, {"error": {"message": "No", "type": "invalid_request_error"}})),
        ModelRejected,
    ),
    "an error after the finish reason": (
        Reply((*CALL, chunk({}, "tool_calls"), OVERLOADED)),
        ModelUnavailable,
    ),
    "something that is no JSON": (Reply((*THREE, "<html>bad gateway</html>")), ModelProtocolError),
    "JSON of another shape": (Reply(([1, 2], "3")), ModelProtocolError),
    "choices of another shape": (Reply(({**chunk({}), "choices": "x"}, DONE)), ModelProtocolError),
}


@pytest.mark.parametrize(("reply", "kind"), BROKEN.values(), ids=BROKEN.keys())
def test_f5_a_broken_stream_is_an_error_and_nothing_of_it_counts(
    provider: Provider, reply: Reply, kind: type[ModelError]
) -> None:
    provider.then(reply)

    with pytest.raises(kind) as caught:
        ask(call())

    assert caught.value.data["text"] == ("One two three." if reply.frames[:3] == THREE else "")
    assert isinstance(caught.value.data["usage"], Usage)
    assert len(provider.requests) == 1, "only the loop retries"


def test_f5_a_retry_after_a_broken_stream_gets_the_text_once(provider: Provider) -> None:
    provider.then(Reply(THREE), text("One two three."))

    with pytest.raises(ModelProtocolError) as caught:
        ask(call())
    streamed, answer = ask(call())

    assert caught.value.retry is Retry.BACKOFF
    assert caught.value.data["usage"].output_tokens == len("One two three.") // 4
    assert streamed == answer.text == "One two three."


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("packet", ["byte", "whole"])
def test_f5_packets_line_ends_and_comments_do_not_matter(
    provider: Provider, newline: str, packet: Any
) -> None:
    reply = calls(("c1", "read", '{"path":"é"}'), content="Grüße 🚀")
    provider.then(reply.but(packet=packet, newline=newline, comments=True))

    streamed, answer = ask(call())

    assert streamed == answer.text == "Grüße 🚀"
    assert answer.calls[0].args_text == '{"path":"é"}'


REFUSED: dict[str, tuple[Reply, str]] = {
    "filter, empty": (stream([], "content_filter"), ""),
    "filter, partial text": (stream([{"content": "Well, "}], "content_filter"), "Well, "),
    "filter, reasoning only": (stream([{"reasoning_content": "Hm."}], "content_filter"), ""),
    "refusal": (stream([{"refusal": "I "}, {"refusal": "cannot."}], "stop"), "I cannot."),
    "a call, then the filter": (calls(("c1", "read", "{}"), finish_reason="content_filter"), ""),
}


@pytest.mark.parametrize(("reply", "said"), REFUSED.values(), ids=REFUSED.keys())
def test_f7_a_refusal_is_its_own_error_and_not_retried(
    provider: Provider, reply: Reply, said: str
) -> None:
    provider.then(reply)

    with pytest.raises(ModelRefused) as caught:
        ask(call())

    assert caught.value.retry is Retry.NEVER
    assert caught.value.data["text"] == said
    assert said.strip() in caught.value.message
    assert len(provider.requests) == 1


@pytest.mark.parametrize("reason", ["function_call", "model_length", "weird", "error"])
def test_f7_an_unknown_finish_reason_is_an_error_that_shows_it(
    provider: Provider, reason: str
) -> None:
    provider.then(text("Hello", finish_reason=reason))

    with pytest.raises(ModelRejected, match=reason) as caught:
        ask(call())

    assert caught.value.retry is Retry.NEVER

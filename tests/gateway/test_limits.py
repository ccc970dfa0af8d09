"""Every wait and every size of a model request has its bound, and the error says which."""

from __future__ import annotations

from typing import Any

import pytest

from runtime_core.clock import monotonic
from runtime_core.errors import ModelTimeout
from tests.gateway.conftest import ask, call
from tests.gateway.provider import Provider, Reply, calls, chunk, stream

WAITS: list[tuple[dict[str, float], Reply, str]] = [
    ({"model_first_token_seconds": 0.3}, Reply(wait=60), "first_token"),
    ({"model_first_token_seconds": 0.3}, Reply((), ending="hang"), "first_token"),
    (
        {"model_first_token_seconds": 0.3},
        Reply((chunk({"role": "assistant"}),), ending="hang"),
        "first_token",
    ),
    (
        {"model_between_tokens_seconds": 0.3},
        Reply((chunk({"content": "So"}),), ending="hang"),
        "between_tokens",
    ),
    (
        {"model_total_seconds": 0.5},
        stream([{"content": "la "}] * 10_000).but(pause=0.02),
        "total",
    ),
]


@pytest.mark.parametrize(("changes", "reply", "phase"), WAITS, ids=range(len(WAITS)))
def test_it_times_out_and_names_what_took_too_long(
    provider: Provider, limited: Any, changes: dict[str, float], reply: Reply, phase: str
) -> None:
    limited(**changes)
    provider.then(reply)
    started = monotonic()

    with pytest.raises(ModelTimeout) as caught:
        ask(call())

    assert caught.value.data["phase"] == phase
    assert monotonic() - started < 3
    assert provider.wait(lambda p: p.open_connections == 0)


def test_comments_do_not_count_as_tokens(provider: Provider, limited: Any) -> None:
    limited(model_first_token_seconds=0.3)
    provider.then(Reply((*[": processing"] * 1000,), pause=0.02))

    with pytest.raises(ModelTimeout) as caught:
        ask(call())

    assert caught.value.data["phase"] == "first_token"


def test_pieces_of_arguments_count_as_tokens(provider: Provider, limited: Any) -> None:
    limited(model_between_tokens_seconds=0.3)
    arguments = '{"path": "' + "x" * 200 + '"}'
    provider.then(calls(("c1", "read", arguments)).but(pause=0.03))

    assert ask(call())[1].calls[0].args_text == arguments


def test_text_is_cut_at_its_bound_like_a_length_finish(provider: Provider, limited: Any) -> None:
    limited(model_text_bytes=1_000)
    provider.then(stream([{"content": "x" * 100}] * 1_000))

    _, answer = ask(call())

    assert answer.finish_reason == "length"
    assert 1_000 <= len(answer.text) <= 1_200
    assert provider.wait(lambda p: p.open_connections == 0)


def test_arguments_are_cut_at_their_bound_like_a_length_finish(
    provider: Provider, limited: Any
) -> None:
    limited(tool_args_bytes=100)
    provider.then(calls(("c1", "write", "x" * 20_000)))

    _, answer = ask(call())

    assert (answer.finish_reason, answer.calls) == ("length", ())

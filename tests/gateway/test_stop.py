"""Case D1: a stop reaches the HTTP response at once, even in silence, and leaves nothing behind."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from runtime_core import gateway
from runtime_core.clock import monotonic
from runtime_core.errors import ModelUnavailable
from runtime_core.gateway import StreamStopped, TextDelta
from tests.gateway.conftest import ask, call
from tests.gateway.provider import Provider, Reply, chunk, stream, text

LONG = stream([{"content": f"{number} "} for number in range(1_000)])


def _stopped_after(deltas: int, provider: Provider) -> StreamStopped:
    """Stop a stream once that many deltas have come, and wait until the provider has noticed."""
    stop = threading.Event()
    seen = 0
    closed = provider.closed_early
    with pytest.raises(StreamStopped) as caught:
        for _ in gateway.stream(call(), stop):
            seen += 1
            if seen == deltas:
                stop.set()
    assert provider.wait(lambda p: p.closed_early > closed, 2)
    return caught.value


def test_d1_a_stop_closes_the_response_and_keeps_the_partial_text(provider: Provider) -> None:
    provider.then(LONG.but(pause=0.005))

    stopped = _stopped_after(20, provider)

    assert stopped.data["text"].startswith("0 1 2 ")
    assert stopped.data["usage"].output_tokens > 0
    assert provider.frames_sent < 80
    assert provider.wait(lambda p: p.open_connections == 0)


def test_d1_a_hundred_stops_leave_no_connection_and_a_usable_pool(provider: Provider) -> None:
    provider.then(LONG.but(pause=0.001))

    for _ in range(100):
        _stopped_after(3, provider)

    assert provider.wait(lambda p: p.open_connections == 0)
    provider.replies[:] = [text("Still here.")]
    assert ask(call())[1].text == "Still here."


@pytest.mark.parametrize(
    "reply",
    [
        Reply(wait=60),
        Reply((), ending="hang"),
        Reply((chunk({"content": "So"}),), ending="hang"),
    ],
    ids=["before the response", "before the first chunk", "after the first chunk"],
)
def test_d1_a_stop_is_noticed_while_the_provider_is_silent(
    provider: Provider, reply: Reply
) -> None:
    provider.then(reply)
    stop = threading.Event()
    set_at: list[float] = []

    def set_stop() -> None:
        provider.wait(lambda p: bool(p.requests) and p.frames_sent == len(reply.frames))
        set_at.append(monotonic())
        stop.set()

    threading.Thread(target=set_stop).start()
    with pytest.raises(StreamStopped):
        list(gateway.stream(call(), stop))

    assert monotonic() - set_at[0] < 0.5
    assert provider.wait(lambda p: p.open_connections == 0, 2)


def test_a_stop_that_is_set_before_asks_nothing_of_the_provider(provider: Provider) -> None:
    provider.then(text("Hello"))
    stop = threading.Event()
    stop.set()

    with pytest.raises(StreamStopped):
        list(gateway.stream(call(), stop))

    assert provider.requests == []


def test_closing_the_iterator_closes_the_response(provider: Provider) -> None:
    provider.then(LONG.but(pause=0.005))
    deltas = gateway.stream(call(), threading.Event())

    first = next(deltas)
    deltas.close()  # type: ignore[attr-defined]

    assert isinstance(first, TextDelta)
    assert provider.wait(lambda p: p.open_connections == 0 and p.closed_early == 1)


def test_an_error_in_the_reader_closes_the_response(provider: Provider) -> None:
    provider.then(LONG.but(pause=0.005))

    with pytest.raises(ZeroDivisionError):
        for _ in gateway.stream(call(), threading.Event()):
            _ = 1 / 0

    assert provider.wait(lambda p: p.open_connections == 0)


def test_a_slow_reader_slows_the_stream_and_loses_nothing(provider: Provider, limited: Any) -> None:
    limited(model_between_tokens_seconds=0.2)
    provider.then(stream([{"content": f"{number} "} for number in range(2_000)]))
    slow = threading.Event()
    got: list[str] = []

    for item in gateway.stream(call(), threading.Event()):
        if isinstance(item, TextDelta):
            got.append(item.text)
            if len(got) in (1, 500):
                slow.wait(0.5)

    assert "".join(got) == "".join(f"{number} " for number in range(2_000))


def test_streams_run_side_by_side(provider: Provider) -> None:
    provider.then(lambda body: text(body["messages"][-1]["content"] * 50).but(pause=0.002))
    answers: dict[int, str] = {}

    def run(number: int) -> None:
        from runtime_core.gateway.messages import user_request

        answers[number] = ask(call(user_request(f"<{number}>")))[1].text

    threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    assert answers == {number: f"<{number}>" * 50 for number in range(8)}


def test_a_loop_that_is_stopped_ends_its_streams_and_a_new_one_starts(provider: Provider) -> None:
    provider.then(Reply((chunk({"content": "So"}),), ending="hang"))
    deltas = gateway.stream(call(), threading.Event())
    assert isinstance(next(deltas), TextDelta)

    gateway.stop_loop()

    with pytest.raises(ModelUnavailable, match="shut down"):
        list(deltas)
    assert provider.wait(lambda p: p.open_connections == 0)
    provider.replies[:] = [text("Again.")]
    assert ask(call())[1].text == "Again."

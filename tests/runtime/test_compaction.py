"""A long conversation is sent to the model in part, which is recorded, and is stored whole."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from runtime_core import gateway
from runtime_core.errors import InvalidInput
from runtime_core.gateway import messages as wire
from runtime_core.gateway import window
from runtime_core.loop import model_step
from runtime_core.models import Checkpoint, Message
from tests.gateway import provider as http
from tests.gateway.provider import Provider
from tests.runtime.world import World, call, calls, drive, events, expire_lease, fresh, texts

BIG = "x" * 2_000
TURNS = [{"text": f"Turn {n}.", "calls": [call("look", at=f"{n}{BIG}")]} for n in range(12)]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[list[Any]]:
    """The messages of each request."""
    heard: list[list[Any]] = []
    stream = gateway.stream

    def listen(asked: Any, stop: Any) -> Any:
        heard.append(list(asked.messages))
        return stream(asked, stop)

    monkeypatch.setattr(model_step.gateway, "stream", listen)
    return heard


def test_a_long_conversation_is_compacted_and_the_run_comes_to_its_end(
    world: World, sent: list[list[Any]]
) -> None:
    run = world.start([*TURNS, {"text": "Seen."}], context_tokens=10_000)
    room = window.room_of(10_000)
    run = drive(run)

    assert (run.status, run.output) == ("completed", "Seen."), run.error
    assert len(calls(run)) == 12
    assert max(window.size_of(messages) for messages in sent) <= room
    assert all(wire.answers_every_call(messages) for messages in sent)
    assert len(sent[-1]) < 2 + 2 * 12
    assert Message.objects.filter(run=run).count() == 1 + 2 * 12 + 1, "all of it stays stored"
    marks = list(Checkpoint.objects.filter(run=run, reason="compaction").order_by("id"))
    assert 1 <= len(marks) <= 2, "rarely"
    cuts = [mark.state["cut"] for mark in marks]
    assert cuts == sorted(cuts) and cuts[0] > 0
    said = [e.data["message"] for e in events(run, "progress")]
    assert any(f"{cuts[0]} older message" in text for text in said)
    texts(run)


def test_the_mark_survives_a_lost_worker_and_a_later_run_of_the_thread(
    world: World, sent: list[list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    turns = [*TURNS[:11], {"text": "Seen."}]
    run = world.start(turns, context_tokens=10_000)
    ask, asked = model_step.compaction.fitting, itertools.count()

    def die_late(*args: Any) -> Any:
        if next(asked) == 10:
            raise Killed
        return ask(*args)

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(model_step.compaction, "fitting", die_late)
        drive(run)
    marks = Checkpoint.objects.filter(run=run, reason="compaction")
    mark, count = marks.latest("id"), marks.count()
    before = len(sent)
    expire_lease(run)
    run = drive(fresh(run), "heir")

    assert run.status == "completed", run.error
    assert sent[before][-1].parts and len(sent[before]) < 2 + 2 * 10
    assert Checkpoint.objects.filter(run=run).latest("id").state["cut"] >= mark.state["cut"]
    assert marks.count() == count, "the heir goes on from the mark and makes none of its own"

    again = drive(world.start([{"text": "Hello."}], thread_id=run.thread_id, context_tokens=10_000))
    assert (again.status, again.output) == ("completed", "Hello.")
    assert wire.answers_every_call(sent[-1])
    assert window.size_of(sent[-1]) <= window.room_of(10_000)


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    """A strict provider."""
    with Provider() as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield running


def test_f4_a_window_that_is_smaller_than_thought_is_met_once_with_half_as_much(
    world: World, provider: Provider
) -> None:
    asked = [http.calls((f"c{n}", "look", f'{{"at": "{n}{BIG}"}}')) for n in range(4)]
    too_long = http.error(400, "maximum context length is 4096 tokens", "context_length_exceeded")
    provider.then(*asked, too_long, http.text("Seen."))
    run = drive(world.start([], model="openai-chat:gpt-5-mini"))

    assert (run.status, run.output) == ("completed", "Seen."), run.error
    assert provider.refused == []
    refused, taken = provider.requests[-2:]
    assert len(str(taken["messages"])) < len(str(refused["messages"])) * 0.7

    provider.replies[:] = [too_long]
    count = len(provider.requests)
    run = drive(world.start([], model="openai-chat:gpt-5-mini"))
    assert run.status == "failed"
    assert run.error and run.error["code"] == "context_too_long"
    assert len(provider.requests) == count + 2, "once more, and then no more"


@pytest.mark.parametrize("wrong", [True, 10, "many", 10**9])
def test_a_window_that_cannot_be_is_refused_by_name(world: World, wrong: Any) -> None:
    with pytest.raises(InvalidInput, match="context_tokens"):
        world.agent([], context_tokens=wrong)

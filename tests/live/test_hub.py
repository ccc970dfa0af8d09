"""The hub: one read an event whoever watches, and cursors that nothing can make skip or repeat."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from runtime_core import broker, consumers, transitions
from runtime_core.consumers import RunSocket
from runtime_core.db_threads import in_db_thread
from runtime_core.events import publish, read
from runtime_core.events.hub import Follower, Hub, hub
from runtime_core.events.read import Frame
from runtime_core.limits import limits
from runtime_core.models import ApiToken, Run
from tests.api.room import Room
from tests.live.web import deltas, emit

WAIT_S = 0.5


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many events each read of the table brought."""
    counts: list[int] = []
    real = read.after

    def counted(*args: Any) -> list[Frame]:
        frames = real(*args)
        counts.append(len(frames))
        return frames

    monkeypatch.setattr(read, "after", counted)
    return counts


async def follow_to(follower: Follower, last_seq: int) -> list[int]:
    seqs: list[int] = []
    async with asyncio.timeout(20):
        while follower.cursor < last_seq:
            seqs += [frame.seq for frame in await follower.batch(WAIT_S)]
    return seqs


def live(test: Callable[[Room, Run], Coroutine[Any, Any, None]], room: Room) -> None:
    asyncio.run(test(room, room.run("running")))


def test_live_events_are_read_and_serialised_once_for_all(room: Room, reads: list[int]) -> None:
    async def watch(room: Room, run: Run) -> None:
        this = hub()
        with this.follow(run.id, 0) as one, this.follow(run.id, 0) as two:
            await in_db_thread(emit, run, deltas(1))
            await asyncio.gather(follow_to(one, 1), follow_to(two, 1))
            await asyncio.sleep(2 * WAIT_S)  # the feed has certainly looked at the run
            reads.clear()
            await in_db_thread(emit, run, deltas(50))
            first, second = await asyncio.gather(one.batch(5), two.batch(5))

        assert sum(reads) == 50
        assert [frame.json for frame in first] == [frame.json for frame in second]
        assert all(a is b for a, b in zip(first, second, strict=True))

    live(watch, room)


def test_a_follower_that_falls_behind_reads_the_table_itself(room: Room) -> None:
    async def watch(room: Room, run: Run) -> None:
        with hub().follow(run.id, 0) as quick, hub().follow(run.id, 0) as slow:
            many = limits().socket_queue * 4
            for done in range(0, many, 64):
                await in_db_thread(emit, run, deltas(64))
                await follow_to(quick, done + 64)
            assert await follow_to(slow, many) == list(range(1, many + 1))

    live(watch, room)


def test_the_tail_of_a_feed_is_bounded_in_characters(room: Room) -> None:
    async def watch(room: Room, run: Run) -> None:
        with hub().follow(run.id, 0) as follower:
            await in_db_thread(emit, run, deltas(1))
            await follow_to(follower, 1)
            for _ in range(8):
                await in_db_thread(emit, run, deltas(10, "x" * 60_000))
            assert await follow_to(follower, 81) == list(range(2, 82))
            tail = follower._feed._tail
            assert sum(frame.size for frame in tail) < 2_200_000

    live(watch, room)


def test_a_hint_that_lies_or_cannot_be_read_harms_nobody(room: Room, broker: Any) -> None:
    async def watch(room: Room, run: Run) -> None:
        with hub().follow(run.id, 0) as follower:
            await in_db_thread(emit, run, deltas(2), hint=False)
            lie = {"run": str(run.id), "seq": 999, "project": str(run.project_id), "inbox": False}
            for message in (b"{", b"[]", b'{"run": 5}', b"\xff", json.dumps(lie).encode()):
                broker.publish(publish.CHANNEL, message)
            assert await follow_to(follower, 2) == [1, 2]
            await in_db_thread(emit, run, deltas(1))
            assert await follow_to(follower, 3) == [3]

    live(watch, room)


def test_nothing_runs_while_nobody_watches(room: Room) -> None:
    async def watch(room: Room, run: Run) -> None:
        this = Hub()
        with this.follow(run.id, 0), this.watch_inbox([run.project_id]):
            assert this._tasks
        assert not this._tasks
        assert not this._feeds
        await asyncio.sleep(0)

    live(watch, room)


def test_a_hint_costs_little_when_valkey_is_dead(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.REDIS_URL = "redis://10.255.255.1:6379/0"  # answers nobody
    monkeypatch.setattr(broker, "_resting_until", 0.0)
    started = time.monotonic()

    publish._publish("{}")
    first = time.monotonic() - started
    for _ in range(100):
        publish._publish("{}")

    assert first < 0.3
    assert time.monotonic() - started < 0.35


def test_a_client_that_takes_nothing_is_closed_as_too_slow(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "STALL_S", 0.2)
    token = ApiToken.issue(room.ana)[1]

    async def watch(room: Room, run: Run) -> None:
        await in_db_thread(transitions.tell, run.id, deltas(3))
        sent = await _with_a_stuck_client(run, token)
        assert sent == ["websocket.accept", "websocket.send", ("websocket.close", 4408)]

    live(watch, room)


def test_an_idle_socket_beats_with_its_place(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "HEARTBEAT_S", 0.1)
    monkeypatch.setattr(consumers, "FRESH_S", 0.2)
    token = ApiToken.issue(room.ana)[1]
    told: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def watch(room: Room, run: Run) -> None:
        await in_db_thread(transitions.tell, run.id, deltas(3))
        incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        incoming.put_nowait({"type": "websocket.connect"})
        serving = asyncio.create_task(
            RunSocket.as_asgi()(scope_of(run, token), incoming.get, told.put)
        )
        async with asyncio.timeout(10):
            messages = [await told.get() for _ in range(5)]
        incoming.put_nowait({"type": "websocket.disconnect", "code": 1001})
        await serving

        beat = json.loads(messages[-1]["text"])
        assert (beat["type"], beat["seq"], beat["data"]) == ("heartbeat", 3, {})

    live(watch, room)


async def _with_a_stuck_client(run: Run, token: str) -> list[Any]:
    """What is sent to a client that takes one message and then no more."""
    sent: list[Any] = []
    incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    incoming.put_nowait({"type": "websocket.connect"})

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "websocket.send" and "websocket.send" in sent:
            await asyncio.Event().wait()
        is_close = message["type"] == "websocket.close"
        sent.append((message["type"], message["code"]) if is_close else message["type"])

    async with asyncio.timeout(10):
        await RunSocket.as_asgi()(scope_of(run, token), incoming.get, send)
    return sent


def scope_of(run: Run, token: str) -> dict[str, Any]:
    return {
        "type": "websocket",
        "headers": [(b"authorization", f"Bearer {token}".encode())],
        "query_string": b"after=0",
        "url_route": {"kwargs": {"run_id": run.id}},
    }

"""Every buffer has a bound, and whoever fills one waits or is told: slow parts push back instead of filling memory."""

from __future__ import annotations

import asyncio
import threading
import uuid

import pytest
import redis

from runtime_core.events import publish
from runtime_core.gateway.pipe import Pipe
from runtime_core.loop.control import watch
from runtime_core.scheduling import slots as slots_module
from runtime_core.scheduling.listener import Listener
from runtime_core.scheduling.slots import Slots
from runtime_core.scheduling.wake import DUE
from tests.runtime.world import wait_until


def test_a_stream_that_nobody_reads_waits() -> None:
    async def fill() -> tuple[int, int]:
        pipe: Pipe[int] = Pipe(asyncio.get_running_loop(), 10)
        put = 0

        async def write() -> None:
            nonlocal put
            while True:
                await pipe.put(put)
                put += 1

        writer = asyncio.create_task(write())
        for _ in range(50):
            await asyncio.sleep(0)
        before = put
        taken, _ = await asyncio.to_thread(pipe.take, 1.0)
        for _ in range(50):
            await asyncio.sleep(0)
        writer.cancel()
        assert len(taken) == 10
        return before, put

    assert asyncio.run(fill()) == (10, 20)


def test_a_worker_takes_no_more_than_it_has_slots_and_says_when_others_wait(
    monkeypatch: pytest.MonkeyPatch, broker: redis.Redis
) -> None:
    go_on, driven = threading.Event(), []

    def drive(worker: str, run_id: uuid.UUID | None = None) -> bool:
        if run_id is None:
            return False
        driven.append(run_id)
        return go_on.wait(20)

    monkeypatch.setattr(slots_module, "advance", drive)
    monkeypatch.setattr(watch, "crowded", False)
    slots = Slots(2, "w")
    monkeypatch.setattr(slots._alive, "wait", lambda seconds: True)
    try:
        assert [slots.offer(uuid.UUID(int=n)) for n in range(4)] == [True, True, False, False]
        assert watch.crowded, "the third had to be refused"
        watch.crowded = False
        assert not slots.wait_for_one(0)
        broker.zadd(DUE, {str(uuid.UUID(int=9)): 0})
        listener = Listener(lambda seconds: slots.wait_for_one(0), slots.offer)
        ends_when_seen = property(lambda self: self.crowded)
        monkeypatch.setattr(type(watch), "shutting_down", ends_when_seen)
        listener._run()
        assert broker.zcard(DUE) == 1, "a worker that is full leaves hints to others"
    finally:
        monkeypatch.undo()
        go_on.set()
        slots.close()
    assert len(driven) == 2


def test_hints_of_a_run_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    sending, sent = threading.Event(), []

    def slow(*hints: str) -> None:
        sent.append(len(hints))
        sending.wait(20)

    monkeypatch.setattr(publish, "_publish", slow)
    later = publish._Later()
    run = uuid.UUID(int=1)
    for seq in range(1_000):
        later.add(run, seq, run, False)
    wait_until(lambda: sent)
    assert len(later._due) <= 1, "of each run only the newest"
    sending.set()

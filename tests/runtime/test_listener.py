"""Hints as workers take them: each run once, the oldest first, by whoever has a free slot."""

from __future__ import annotations

import uuid

import redis

from runtime_core.scheduling import wake
from runtime_core.scheduling.listener import Listener


def test_hints_are_taken_once_and_the_oldest_first(broker: redis.Redis) -> None:
    broker.delete(wake.DUE)
    first, second = uuid.UUID(int=1), uuid.UUID(int=2)
    for run_id in (second, first, first):
        assert wake.send(run_id)
    assert 0 < broker.ttl(wake.DUE) <= wake.KEPT_SECONDS
    taken: list[uuid.UUID] = []
    listener = Listener(lambda seconds: True, lambda run_id: bool(taken.append(run_id)))

    listener._take()
    listener._take()

    assert taken == [first, second]
    assert broker.zcard(wake.DUE) == 0


def test_what_is_no_run_is_passed_over(broker: redis.Redis) -> None:
    broker.delete(wake.DUE)
    broker.zadd(wake.DUE, {"nonsense": 0})
    taken: list[uuid.UUID] = []
    Listener(lambda seconds: True, lambda run_id: bool(taken.append(run_id)))._take()
    assert taken == []

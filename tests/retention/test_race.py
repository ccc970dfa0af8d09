"""Sweeps, holds and second tries at once, over real connections: nothing goes that was held or taken up before."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction

from runtime_core.models import Run
from runtime_core.values import SYSTEM
from tests.pages.world import World
from tests.retention.conftest import NOTHING, left, old, policy
from traces import holds
from traces.models import DataClass, LegalHold
from traces.retention import sweep as sweeping

pytestmark = [pytest.mark.race, pytest.mark.django_db(transaction=True)]


def at_once(works: list[Callable[[], Any]]) -> list[Any]:
    """What each of these gave, all begun at the same moment on threads and connections of their own."""
    gate, given, failed = threading.Barrier(len(works)), [None] * len(works), []

    def work(number: int) -> None:
        try:
            gate.wait(timeout=20)
            given[number] = works[number]()
        except Exception as error:  # noqa: BLE001 - told below
            failed.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=50)
    assert failed == []
    return given


def test_eight_writers_lose_nothing_that_was_held_or_taken_up_in_time(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "BATCH", 1)
    world = World()
    runs = [old(world, 200) for _ in range(24)]
    for data_class in DataClass:
        policy(data_class, 0)

    def held(mine: list[Run]) -> dict[Any, dict[str, int]]:
        seen = {}
        for run in mine:
            with transaction.atomic():
                hold = LegalHold(kind="run", object_id=str(run.id), reason="A lawsuit")
                holds.put(hold, SYSTEM, None)
            seen[run.id] = left(run)
        return seen

    def taken_up(mine: list[Run]) -> dict[Any, dict[str, int]]:
        seen = {}
        for run in mine:
            # Whoever tries a run again moves its row, and finds it gone or keeps it.
            if Run.objects.filter(id=run.id).update(status="paused", ended_at=None):
                seen[run.id] = left(run)
        return seen

    def swept() -> dict[str, int]:
        return sweeping.sweep(False, lambda *_: None)

    *sweeps, a, b, c, d = at_once(
        [
            *[swept] * 4,
            lambda: held(runs[23:17:-1]), lambda: held(runs[17:13:-1]),
            lambda: taken_up(runs[13:10:-1]), lambda: taken_up(runs[10:7:-1]),
        ]
    )  # fmt: skip
    swept()

    kept = {**a, **b, **c, **d}
    for run in runs:
        assert left(run) == kept.get(run.id, NOTHING), "what was seen after a hold is there still"
    gone = sum(each["run_state"] for each in sweeps)
    assert gone <= sum(1 for run in runs if left(run)["runs"] == 0), "nothing is counted twice"


def test_a_hold_waits_for_the_deletion_that_is_under_way(transactional_db: None) -> None:
    world = World()
    run = old(world, 200)
    inside, done = threading.Event(), threading.Event()

    def deleting() -> None:
        with transaction.atomic():
            holds.guard()
            inside.set()
            waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            with connection.cursor() as cursor:
                while True:
                    cursor.execute(waits)
                    if cursor.fetchone()[0]:
                        break
            assert not done.is_set()

    def holding() -> None:
        inside.wait(timeout=20)
        with transaction.atomic():
            hold = LegalHold(kind="run", object_id=str(run.id), reason="A lawsuit")
            holds.put(hold, SYSTEM, None)
        done.set()

    at_once([deleting, holding])
    assert done.is_set()
    assert holds.held_among([run.id]) == {run.id}

"""Services die in the middle of real work by real workers; every run ends right and every effect happens once."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
import redis
from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connection, connections

from config.services.postgres import Postgres
from config.services.valkey import Valkey
from runtime_core import ports
from runtime_core.models import Run
from runtime_core.scheduling import reconcile
from tests.runtime.tools import at_point, effects
from tests.runtime.workers import Worker
from tests.runtime.world import (
    World,
    call,
    decide_on,
    events,
    fresh,
    open_interrupts,
    statuses,
    texts,
    wait_until,
)

pytestmark = [pytest.mark.faults, pytest.mark.timeout(120)]

TURNS = [
    {"text": "First a note. " * 8, "calls": [call("note", text="n1"), call("look")]},
    {"text": "Then the book. " * 8, "calls": [call("ledger_append", text="pay {{input}}")]},
    {"text": "And the charge. " * 8, "calls": [call("charge", amount=7)]},
    {"text": "That is all. " * 8},
]


def look_after(world: World, runs: list[Run]) -> bool:
    """What beat and people do all the time; True once all runs have ended. Patient with a database that is away."""
    try:
        reconcile.reconcile()
        reconcile.dispatch()
        for run in runs:
            for interrupt in open_interrupts(run):
                done = interrupt.kind == "outcome_unknown" and f"pay {run.input}" in effects()
                if done:
                    decide_on(interrupt, world.bob, "respond", response="it is in the book")
                else:
                    decide_on(interrupt, world.bob)
        return all(fresh(run).state.ended for run in runs)
    except DatabaseError:
        connection.close()
        return False


def ends_right(world: World, runs: list[Run], seconds: float = 60) -> None:
    wait_until(lambda: look_after(world, runs), seconds, "all runs end", every=0.25)
    for run in runs:
        run = fresh(run)
        assert run.status == "completed", run.error
        statuses(run)
        texts(run)
        kinds = [e.type for e in events(run)]
        assert kinds.count("done") == 1 and kinds[-1] == "done"
        results = Counter(e.data["call_id"] for e in events(run, "tool_call_result"))
        assert set(results.values()) == {1}
    counts = Counter(effects())
    assert [counts[f"pay {run.input}"] for run in runs] == [1] * len(runs)
    assert sum(n for line, n in counts.items() if line.startswith("charge:")) == len(runs)
    assert sum(n for line, n in counts.items() if line.endswith(":n1")) == len(runs)


def streaming(run: Run) -> Callable[[], object]:
    return lambda: sum(map(len, texts(run).values())) > 20


@pytest.fixture
def valkey(valkey_server: Valkey | None) -> Iterator[Valkey]:
    """The session's Valkey, up again afterwards whatever happens."""
    if valkey_server is None:
        pytest.skip("the broker is not ours to kill")
    yield valkey_server
    if valkey_server.process is None or valkey_server.process.poll() is not None:
        valkey_server.start()


@pytest.fixture
def postgres(postgres_server: Postgres | None, worker: Worker) -> Iterator[Postgres]:
    """The session's PostgreSQL, for once with commits that survive its crash; up again afterwards."""
    if postgres_server is None:
        pytest.skip("the database is not ours to kill")
    name = connection.settings_dict["NAME"]
    with connection.cursor() as cursor:
        cursor.execute(f'ALTER DATABASE "{name}" SET synchronous_commit = on')
    connections.close_all()
    yield postgres_server
    if postgres_server.process is None or postgres_server.process.poll() is not None:
        postgres_server.start()
    connections.close_all()
    with connection.cursor() as cursor:
        cursor.execute(f'ALTER DATABASE "{name}" RESET synchronous_commit')


def test_valkey_is_killed_and_comes_back_in_the_middle(
    world: World, worker: Worker, valkey: Valkey
) -> None:
    run = world.start(TURNS, chunk_ms=10)
    wait_until(streaming(run), 20, "it works")
    assert valkey.process
    valkey.process.kill()
    valkey.process.wait(5)
    before = len(events(run))
    wait_until(lambda: len(events(run)) > before, 20, "it works on without a broker")
    wait_until(lambda: open_interrupts(run), 30, "it asks without a broker")
    look_after(world, [run])
    valkey.start()
    ends_right(world, [run])


def test_all_that_valkey_knows_is_wiped_in_the_middle(
    world: World, worker: Worker, broker: redis.Redis
) -> None:
    runs = [world.start(TURNS, chunk_ms=5, input=f"run {n}") for n in range(3)]
    stop = threading.Event()

    def wipe() -> None:
        while not stop.wait(0.05):
            broker.flushall()

    wiper = threading.Thread(target=wipe)
    wiper.start()
    try:
        time_limit = time.monotonic() + 4
        wait_until(lambda: look_after(world, runs) or time.monotonic() > time_limit, 20, every=0.25)
    finally:
        stop.set()
        wiper.join()
    ends_right(world, runs)


def test_postgres_dies_and_comes_back_in_the_middle_of_the_models_answer(
    world: World, worker: Worker, postgres: Postgres
) -> None:
    run = world.start(TURNS, chunk_ms=15)
    wait_until(streaming(run), 20, "it works")
    crash(postgres)
    ends_right(world, [run])


def test_postgres_dies_and_comes_back_while_a_tool_works(
    world: World, worker: Worker, postgres: Postgres
) -> None:
    at_point("hold", "after-charge").touch()
    run = world.start(TURNS)
    reached = at_point("hold", "after-charge").with_suffix(".reached")
    wait_until(lambda: look_after(world, [run]) or reached.exists(), 30, "it charges", every=0.1)
    crash(postgres)
    at_point("hold", "after-charge").unlink()
    ends_right(world, [run])


def crash(postgres: Postgres) -> None:
    """Stop the server as a crash would, leave it away for a moment, and start it again."""
    ports.spans().flush()
    connections.close_all()
    assert postgres.process
    postgres.process.send_signal(signal.SIGQUIT)
    postgres.process.wait(10)
    postgres.start()


def test_workers_are_killed_one_after_the_other_under_load(
    world: World, worker_env: dict[str, str]
) -> None:
    first, second = Worker(worker_env), Worker(worker_env)
    try:
        first.start()
        runs = [world.start(TURNS, chunk_ms=3, input=f"run {n}") for n in range(4)]
        wait_until(lambda: any(map(texts, runs)), 20, "they work")
        look_after(world, runs)
        first.kill()
        second.start()
        ends_right(world, runs)
    finally:
        first.stop()
        second.stop()


def test_the_control_channel_is_only_a_hint(world: World, valkey: Valkey) -> None:
    from runtime_core.events import publish
    from runtime_core.loop import control

    assert valkey.process
    valkey.process.kill()
    valkey.process.wait(5)
    started = time.monotonic()
    control.signal(world.project.id)
    publish.announce(world.project.id, 1, world.project.id, inbox=True)
    assert time.monotonic() - started < 2
    assert settings.CELERY_TASK_ACKS_LATE is False

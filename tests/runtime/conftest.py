"""Fixtures of the runtime's tests."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from runtime_core import ports
from tests.conftest import environment
from tests.runtime.tools import effects_file
from tests.runtime.workers import Worker
from tests.runtime.world import World, make_world
from tests.runtime.zygote import Zygote


@pytest.fixture
def world(transactional_db: None) -> Iterator[World]:
    """A project with people, an empty book of effects, and no held points."""
    folder = effects_file().parent
    asked = [p for word in ("hold", "kill", "stop") for p in folder.glob(f"{word}-*")]
    for path in [effects_file(), *asked, folder / "waiting"]:
        path.unlink(missing_ok=True)
    yield make_world()
    ports.spans().flush()


@pytest.fixture(scope="session")
def forks(django_db_setup: None) -> Iterator[Zygote]:
    """A process that forks a worker for each run that it is given."""
    child = Zygote(environment())
    yield child
    child.close()


@pytest.fixture
def zygote(forks: Zygote, world: World) -> Iterator[Zygote]:
    """Real workers, killed and stopped wherever a test wants."""
    yield forks
    forks.sweep()


@pytest.fixture
def worker_env(process_env: dict[str, str], broker: object) -> dict[str, str]:
    """The environment of a worker with a short lease."""
    short = {"lease_seconds": 3, "heartbeat_seconds": 1, "self_fence_seconds": 2}
    return {**process_env, "INTERLOCK_TEST_LIMITS": json.dumps(short)}


@pytest.fixture
def worker(worker_env: dict[str, str], world: World) -> Iterator[Worker]:
    """One real worker."""
    running = Worker(worker_env)
    try:
        yield running.start()
    finally:
        running.stop()

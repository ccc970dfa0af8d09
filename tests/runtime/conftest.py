"""Fixtures of the runtime's tests."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.runtime.tools import effects_file
from tests.runtime.workers import Worker
from tests.runtime.world import World, make_world


@pytest.fixture
def world(transactional_db: None) -> Iterator[World]:
    """A project with people, an empty book of effects, and no held points."""
    folder = effects_file().parent
    for path in [effects_file(), *folder.glob("hold-*"), folder / "waiting"]:
        path.unlink(missing_ok=True)
    yield make_world()


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

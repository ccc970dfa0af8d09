"""Fixtures of the runtime's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.runtime.tools import effects_file
from tests.runtime.world import World, make_world


@pytest.fixture
def world(transactional_db: None) -> Iterator[World]:
    """A project with people, an empty book of effects, and no held points."""
    folder = effects_file().parent
    for path in [effects_file(), *folder.glob("hold-*"), folder / "waiting"]:
        path.unlink(missing_ok=True)
    yield make_world()

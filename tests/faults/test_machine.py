"""A short walk of the state machine in each test run; `make faults` takes long ones."""

from __future__ import annotations

import pytest

from tests.faults import walk
from tests.runtime.world import World

pytestmark = pytest.mark.faults


def test_any_sequence_of_moves_keeps_every_invariant(world: World) -> None:
    walk.take(world, 1, examples=4, steps=30)

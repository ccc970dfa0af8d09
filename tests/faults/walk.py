"""Walks of the state machine, as cases of the matrix and as the short test of each run."""

from __future__ import annotations

import random
import traceback
from collections.abc import Callable
from functools import partial

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.faults.machine import machine
from tests.faults.scene import Scene
from tests.runtime.world import World

WALKS = 12
EXAMPLES = 8
STEPS = 40


def take(world: World, number: int, examples: int = EXAMPLES, steps: int = STEPS) -> None:
    """Random sequences of moves, the same ones for the same number; an AssertionError shows the moves."""
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    found = seed(number)(machine(world))
    run_state_machine_as_test(found, settings=chosen)


def cases(number: int) -> list[tuple[str, Callable[[Scene], list[str]]]]:
    """So many walks, chosen by the seed."""
    chosen = random.Random(number)
    numbers = [chosen.randrange(2**31) for _ in range(WALKS)]
    return [
        (f"{EXAMPLES} times {STEPS} moves, seed {n}", partial(_walk, number=n)) for n in numbers
    ]


def _walk(scene: Scene, number: int) -> list[str]:
    try:
        take(scene.world, number)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
        *_, last = traceback.extract_tb(error.__traceback__)
        moves = [note for note in getattr(error, "__notes__", []) if "everything_holds" not in note]
        return [f"{type(error).__name__} at line {last.lineno}: {last.line}: {error}", *moves]
    return []

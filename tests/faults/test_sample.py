"""A sample of the fault matrix in each test run; `make faults` runs all of it."""

from __future__ import annotations

import pytest

from tests.faults.fast import outcome
from tests.faults.matrix import Section, points_of, sections
from tests.faults.scene import Scene
from tests.runtime.world import World
from tests.runtime.zygote import Zygote

pytestmark = [pytest.mark.faults, pytest.mark.timeout(240)]
# Of each section every so manieth case; the rest is for `make faults`.
EVERY = {
    "kill": 7,
    "raise": 20,
    "drop": 15,
    "lose_answer": 11,
    "delay": 30,
    "lose_message": 3,
    "nap": 20,
    "sleeper": 11,
    "pair of kills": 54,
    "sleeper and heir": 40,
    "command": 7,
    "race": 1,
    "walk": 0,
}


@pytest.fixture
def matrix(world: World, zygote: Zygote) -> tuple[Scene, dict[str, Section]]:
    """A scene, and the sections of its matrix by name."""
    scene = Scene(world, zygote)
    return scene, {section.name: section for section in sections(points_of(scene), seed=1)}


def failures(matrix: tuple[Scene, dict[str, Section]], *names: str) -> list[str]:
    scene, by_name = matrix
    return [
        f"{name}: {case.label}: {problem}"
        for name in names
        for case in by_name[name].cases[:: EVERY[name]]
        for problem in outcome(case, scene)
    ]


def test_b2_a_kill_at_any_point_loses_nothing_and_repeats_nothing(
    matrix: tuple[Scene, dict[str, Section]],
) -> None:
    assert failures(matrix, "kill", "pair of kills") == []


def test_b4_a_worker_that_slept_past_its_lease_changes_nothing_when_it_wakes(
    matrix: tuple[Scene, dict[str, Section]],
) -> None:
    assert failures(matrix, "nap", "sleeper", "sleeper and heir") == []


def test_b2_what_breaks_in_a_process_that_lives_on_loses_nothing(
    matrix: tuple[Scene, dict[str, Section]],
) -> None:
    assert failures(matrix, "raise", "drop", "lose_answer", "lose_message", "delay") == []


def test_b2_a_command_that_is_killed_is_done_whole_or_not_at_all(
    matrix: tuple[Scene, dict[str, Section]],
) -> None:
    assert failures(matrix, "command") == []


@pytest.mark.race
def test_b4_two_at_once_come_one_after_the_other(matrix: tuple[Scene, dict[str, Section]]) -> None:
    assert failures(matrix, "race") == []


def test_the_matrix_has_every_point_and_enough_cases(
    matrix: tuple[Scene, dict[str, Section]],
) -> None:
    _, by_name = matrix
    assert set(by_name) == set(EVERY)
    assert sum(len(section.cases) for section in by_name.values()) >= 900
    labels = " ".join(case.label for case in by_name["kill"].cases)
    for commit in ("claim", "append", "commit", "decide"):
        assert f"{commit}.before" in labels and f"{commit}.after" in labels
    for call in ("tool", "model", "hint", "wake"):
        assert f"{call}.before" in labels and f"{call}.after" in labels
    assert "commit.inside" in labels and "decide.inside" in labels

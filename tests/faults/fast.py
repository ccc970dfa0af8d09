"""Runs the fast tier and the mutants, and says what was found."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator

from tests.faults import mutants
from tests.faults.invariants import deadlocks
from tests.faults.matrix import Case, Section, points_of, sections
from tests.faults.scene import Scene
from tests.runtime.world import World
from tests.runtime.zygote import Zygote


def outcome(case: Case, scene: Scene) -> list[str]:
    """What was wrong; an error of the harness or of the core is wrong too."""
    try:
        return case.run(scene)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
        return [f"{type(error).__name__}: {error}"]
    finally:
        scene.zygote.sweep()


def matrix(world: World, zygote: Zygote, seed: int, *, everything: bool, only: str) -> int:
    """Run the sections and print a line each; how many cases failed."""
    scene = Scene(world, zygote)
    points = points_of(scene)
    print(f"fast tier: a life of {len(points)} points, seed {seed}")
    before, failed, ran, began = deadlocks(), 0, 0, time.monotonic()
    for section in sections(points, seed, everything=everything):
        cases = [c for c in section.cases if only in f"{section.name}: {c.label}"]
        if cases:
            failed += _section(section, cases, scene)
            ran += len(cases)
    seconds = time.monotonic() - began
    print(
        f"fast tier: {ran} cases in {seconds:.0f} s, {failed} failed, {deadlocks() - before} deadlocks"
    )
    return failed + deadlocks() - before


def _section(section: Section, cases: list[Case], scene: Scene) -> int:
    began, failed = time.monotonic(), 0
    for case in cases:
        problems = outcome(case, scene)
        failed += bool(problems)
        if problems:
            print(
                f"  FAILED {section.name}: {case.label}\n    " + "\n    ".join(problems), flush=True
            )
    told = (
        f"{len(cases)} of {section.total}" if len(cases) < section.total else f"all {section.total}"
    )
    seconds = time.monotonic() - began
    print(f"  {section.name:18} {told:>14} cases {seconds:6.0f} s  {failed} failed", flush=True)
    return failed


def all_mutants(world: World, zygote: Zygote, seed: int, names: Iterable[str], only: str) -> int:
    """Give the core each defect in turn; how many of them nobody noticed."""
    healthy = points_of(Scene(world, zygote))
    survived = 0
    for name in names:
        began = time.monotonic()
        with mutants.applied(name):
            caught = _hunt(Scene(world, zygote, name), healthy, seed, only)
        survived += caught is None
        seconds = time.monotonic() - began
        print(f"  {name:42} {caught or 'SURVIVED'} ({seconds:.0f} s)", flush=True)
    return survived


def _hunt(scene: Scene, points: list[str], seed: int, only: str) -> str | None:
    """The first case that notices, going through all sections at once."""
    for tried, (section, case) in enumerate(_in_turn(sections(points, seed)), 1):
        if only not in f"{section.name}: {case.label}":
            continue
        problems = outcome(case, scene)
        if problems:
            return f"caught by case {tried}, {section.name}: {case.label}: {problems[0][:110]}"
    return None


def _in_turn(found: list[Section]) -> Iterator[tuple[Section, Case]]:
    """One case of each section after the other; the walks, which take longest, at the end."""
    rows = [[(section, case) for case in section.cases] for section in found]
    *rows, walks = rows
    for row in itertools.zip_longest(*rows):
        yield from (pair for pair in row if pair is not None)
    yield from walks

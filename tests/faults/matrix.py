"""The fast tier: every way in which one or two processes can come to harm on one scripted run.

A case is addressed by the index of the point that it strikes, since names repeat. Products that are too large to run
each time are sampled by a seed that is printed; the same seed takes the same cases.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tests.faults import commands, races, walk
from tests.faults.scene import Scene

Problems = list[str]
# What one process can come to, at any point; then its heirs go on.
SINGLE = ("kill", "raise", "drop", "lose_answer", "delay")
# So many of each product are run, unless all are asked for.
PAIRS = 160
INTERLEAVINGS = 320
# An heir finds a run that its forerunner has brought this far, and needs at most so many points more than were left.
MORE = 6


@dataclass(frozen=True, slots=True)
class Case:
    """One way to come to harm; `run` returns what was wrong afterwards."""

    label: str
    run: Callable[[Scene], Problems]


@dataclass(frozen=True, slots=True)
class Section:
    """Cases of one kind: those to run, of `total` that there are."""

    name: str
    total: int
    cases: Sequence[Case]


def points_of(scene: Scene) -> list[str]:
    """The points of a life without harm, in order; AssertionError if even that goes wrong."""
    run = scene.begin()
    answer = scene.live(run, -1, "kill")
    problems = scene.heal(run) or scene.judge(run)
    assert not problems, problems
    return list(answer["points"])


def sections(points: list[str], seed: int, *, everything: bool = False) -> list[Section]:
    """All sections of the matrix over a life with these points."""
    chosen = random.Random(seed)
    each = list(enumerate(points))
    pairs = [(a, b) for a, _ in each for b in range(len(points) - a + MORE)]
    told = [(at, name) for at, name in each if name in ("hint.before", "wake.before")]
    return [
        *(
            _whole(action, [_case(f"{action} at", single, p, action) for p in each])
            for action in SINGLE
        ),
        _whole("lose_message", [_case("lost at", single, p, "lose_message") for p in told]),
        _whole("nap", [_case("nap at", nap, p) for p in each]),
        _whole("sleeper", [_case("asleep at", sleeper, p) for p in each]),
        _sampled(
            "pair of kills",
            [
                Case(f"kill at {a} {points[a]}, then at {b}", partial(pair, a=a, b=b))
                for a, b in pairs
            ],
            chosen,
            PAIRS,
            everything,
        ),
        _sampled(
            "sleeper and heir",
            [
                Case(
                    f"asleep at {a} {points[a]}, heir {how} at {b}",
                    partial(heir, a=a, b=b, how=how),
                )
                for a, b in pairs
                for how in ("stop", "kill")
            ],
            chosen,
            INTERLEAVINGS,
            everything,
        ),
        _whole("command", [Case(name, body) for name, body in commands.CASES]),
        _whole("race", [Case(name, body) for name, body in races.CASES]),
        _whole("walk", [Case(name, body) for name, body in walk.cases(seed)]),
    ]


def single(scene: Scene, at: int, action: str) -> Problems:
    """One process comes to harm; healthy ones go on."""
    run = scene.begin()
    scene.live(run, at, action)
    return scene.heal(run) or scene.judge(run)


def nap(scene: Scene, at: int) -> Problems:
    """A process stops and goes on before its lease is over: nobody else has to do anything."""
    run = scene.begin()
    scene.wake(scene.live(run, at, "stop"), long=False)
    return scene.heal(run) or scene.judge(run)


def sleeper(scene: Scene, at: int) -> Problems:
    """A process sleeps while others bring its run to the end, and wakes long after."""
    run = scene.begin()
    asleep = scene.live(run, at, "stop")
    problems = scene.heal(run)
    scene.wake(asleep)
    return problems or scene.judge(run)


def pair(scene: Scene, a: int, b: int) -> Problems:
    """A process dies, and so does its heir."""
    run = scene.begin()
    scene.live(run, a, "kill")
    scene.lose(run)
    scene.live(run, b, "kill")
    return scene.heal(run) or scene.judge(run)


def heir(scene: Scene, a: int, b: int, how: str) -> Problems:
    """A process sleeps; in the middle of its heir's work, which stops or dies there, it wakes."""
    run = scene.begin()
    asleep = scene.live(run, a, "stop")
    scene.lose(run)
    second = scene.live(run, b, how)
    scene.wake(asleep)
    scene.wake(second, long=False)
    return scene.heal(run) or scene.judge(run)


def _case(words: str, body: Callable[..., Problems], point: tuple[int, str], *more: Any) -> Case:
    at, name = point
    return Case(f"{words} {at} {name}", lambda scene: body(scene, at, *more))


def _whole(name: str, cases: list[Case]) -> Section:
    return Section(name, len(cases), cases)


def _sampled(
    name: str, cases: list[Case], chosen: random.Random, at_most: int, everything: bool
) -> Section:
    some = cases if everything or len(cases) <= at_most else chosen.sample(cases, at_most)
    return Section(name, len(cases), some)

"""What people and beat ask for, killed at each of its points: done whole or not at all, and can be asked for again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from runtime_core.errors import InterlockError
from runtime_core.models import Run
from runtime_core.states import RunStatus
from tests.faults.invariants import violations
from tests.faults.jobs import JOBS
from tests.faults.scene import Scene
from tests.runtime.world import drive, fresh

Problems = list[str]
MOST_POINTS = 14


def asking(scene: Scene) -> Run:
    """A run that waits for a person."""
    return drive(scene.begin())


def paused(scene: Scene) -> Run:
    """A run that an operator has paused."""
    run = scene.begin()
    JOBS["command"]("web", run.id, person=scene.world.alice.id, name="pause_run")
    return fresh(run)


def killed_at(
    scene: Scene, at: int, name: str, begin: Callable[[Scene], Run], wanted: RunStatus
) -> Problems:
    """The command's process dies at that point; the person, who saw no answer, asks again."""
    run = begin(scene)
    before = run.status
    scene.fork(run, "command", at, "kill", person=scene.world.alice.id, name=name)
    now = fresh(run).status
    problems = violations([run.id])
    if now not in (before, wanted.value):
        problems.append(f"it was {before} and is {now}")
    if now == before:
        try:
            JOBS["command"]("web", run.id, person=scene.world.alice.id, name=name)
        except InterlockError as error:
            problems.append(f"asked again: {error}")
    if fresh(run).status != wanted.value:
        problems.append(f"asked twice, it is {fresh(run).status}")
    if wanted.ended:
        return problems + violations([run.id])
    return problems or scene.heal(run) or scene.judge(run)


def decided_and_killed(scene: Scene, at: int) -> Problems:
    """The web process dies in the middle of a decision; the person, who saw no answer, decides again, and alike."""
    run = asking(scene)
    scene.fork(run, "decide", at, "kill", person=scene.world.bob.id)
    scene.fork(run, "decide", -1, "kill", person=scene.world.bob.id)
    if fresh(run).status != "pending":
        return [f"decided twice, it is {fresh(run).status}"]
    return scene.heal(run) or scene.judge(run)


def beat_killed(scene: Scene, at: int) -> Problems:
    """The tick that gives a lost run back dies; the next one does it."""
    run = scene.begin()
    scene.live(run, 9, "kill")
    expire(run)
    scene.fork(run, "tick", at, "kill")
    problems = violations([run.id])
    scene.fork(run, "tick", -1, "kill")
    if fresh(run).status != "pending":
        problems.append(f"two ticks later it is {fresh(run).status}")
    return problems or scene.heal(run) or scene.judge(run)


def expire(run: Run) -> None:
    """The lease is over, and no tick has seen it."""
    from runtime_core.models import RunLease

    RunLease.objects.filter(run=run).update(until="2000-01-01T00:00:00Z")


COMMANDS: list[tuple[str, Callable[[Scene], Run], RunStatus]] = [
    ("cancel_run", asking, RunStatus.CANCELLED),
    ("pause_run", lambda scene: scene.begin(), RunStatus.PAUSED),
    ("resume_run", paused, RunStatus.PENDING),
]
CASES: list[tuple[str, Callable[[Scene], Problems]]] = [
    *(
        (f"{name} killed at {at}", partial(killed_at, at=at, name=name, begin=begin, wanted=wanted))
        for name, begin, wanted in COMMANDS
        for at in range(8)
    ),
    *((f"decision killed at {at}", partial(decided_and_killed, at=at)) for at in range(8)),
    *((f"tick killed at {at}", partial(beat_killed, at=at)) for at in range(8)),
]

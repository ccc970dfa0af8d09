"""Two at once, brought to the very moment that matters: who waits for whom, who comes second, whose clock is wrong."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.utils import timezone

from approvals.models import Decision
from runtime_core import clock, commands, decisions, transitions
from runtime_core.errors import InterlockError
from runtime_core.loop import parked
from runtime_core.models import Interrupt, Membership, Role, Run, RunLease
from runtime_core.scheduling import reconcile
from tests.faults.commands import asking, expire
from tests.faults.invariants import deadlocks, violations
from tests.faults.scene import Scene
from tests.runtime.world import (
    actor,
    decide_on,
    drive,
    fresh,
    open_interrupts,
    together,
    wait_until,
)

Problems = list[str]


def waits_for_the_run_first(scene: Scene, act: Callable[[Scene, Run, Interrupt], Any]) -> Problems:
    """Somebody has the run's row; whoever also wants it may hold nothing that the other could want next."""
    run = asking(scene)
    [interrupt] = open_interrupts(run)
    before = deadlocks()
    outcome: list[Any] = []

    def other() -> None:
        try:
            outcome.append(act(scene, run, interrupt))
        except InterlockError as error:
            outcome.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=other)
    problems: Problems = []
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM run WHERE id = %s FOR UPDATE", [run.id])
        thread.start()
        wait_until(waiting, 20, "the other waits for the run")
        cursor.execute(
            "SELECT count(*) FROM (SELECT 1 FROM interrupt WHERE run_id = %s FOR UPDATE SKIP LOCKED) i",
            [run.id],
        )
        if cursor.fetchone() != (1,):
            problems.append("it waits for the run with the interrupt locked")
        cursor.execute(
            "SELECT count(*) FROM (SELECT 1 FROM tool_call WHERE run_id = %s FOR UPDATE SKIP LOCKED) c",
            [run.id],
        )
        if cursor.fetchone()[0] != run.tool_calls.count():
            problems.append("it waits for the run with a call locked")
    thread.join(20)
    if deadlocks() != before:
        problems.append("a deadlock")
    return problems + violations([run.id])


def waiting() -> bool:
    """True while a session waits for a lock."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT 1 FROM pg_locks WHERE NOT granted)")
        return bool(cursor.fetchone()[0])


def _decide(scene: Scene, run: Run, interrupt: Interrupt) -> Any:
    return decide_on(interrupt, scene.world.bob)


def _cancel(scene: Scene, run: Run, interrupt: Interrupt) -> Any:
    return commands.cancel_run(actor(scene.world.alice), run)


def _expire(scene: Scene, run: Run, interrupt: Interrupt) -> Any:
    Interrupt.objects.filter(id=interrupt.id).update(expires_at="2000-01-01T00:00:00Z")
    return decisions.expire_due()


def _finish_cancel(scene: Scene, run: Run, interrupt: Interrupt) -> Any:
    return parked.finish_cancel(run.id)


def late_second_decision(scene: Scene) -> Problems:
    """Somebody else's opposite decision comes when the first has counted: refused, whatever the run does by then."""
    run = asking(scene)
    [interrupt] = open_interrupts(run)
    second = another_approver(scene)
    decide_on(interrupt, scene.world.bob)
    problems = []
    for _ in range(2):
        try:
            decide_on(interrupt, second, "reject", reason="no")
            problems.append("a second decision was accepted")
        except InterlockError:
            pass
        drive(run) if fresh(run).status == "pending" else None
    if Decision.objects.filter(interrupt=interrupt).count() != 1:
        problems.append("there is not one decision")
    return problems or scene.heal(run) or scene.judge(run)


def decisions_at_once(scene: Scene) -> Problems:
    """Four decide at the same moment, two each way."""
    run = asking(scene)
    [interrupt] = open_interrupts(run)
    people = [scene.world.bob, *(another_approver(scene) for _ in range(3))]
    outcomes = together(
        *(
            lambda user=user, n=n: decide_on(
                interrupt, user, ("approve", "reject")[n % 2], reason="so"
            )
            for n, user in enumerate(people)
        )
    )
    won = [o for o in outcomes if isinstance(o, Interrupt)]
    problems = [] if len(won) == 1 else [f"{len(won)} decisions counted"]
    problems += [repr(o) for o in outcomes if not isinstance(o, (Interrupt, InterlockError))]
    drive(run)
    return problems + violations([run.id])


def another_approver(scene: Scene) -> User:
    """One more person who may decide."""
    user = User.objects.create_user(f"approver{User.objects.count()}")
    Membership.objects.create(project=scene.world.project, user=user, role=Role.APPROVER)
    return user


def stale_writes(scene: Scene) -> Problems:
    """Everything that a worker can write is refused to one that lost the run, even if it knew the newest version."""
    run = scene.begin()
    old = transitions.claim("old", run.id)
    expire(run)
    reconcile.reconcile()
    problems = _refused(run, old, "given back")
    assert transitions.claim("heir", run.id)
    problems += _refused(run, old, "taken by its heir")
    expire(run)
    reconcile.reconcile()
    return problems or scene.heal(run) or scene.judge(run)


def _refused(run: Run, old: Any, when: str) -> Problems:
    now = fresh(run)
    until = RunLease.objects.filter(run=run).values_list("until", flat=True).first()
    seen = transitions.Seen(now.version, now.last_seq, False, False)
    told = [transitions.NewEvent("progress", {"message": "late"})]
    wrong = []
    for name, write in {
        "append": lambda: transitions.append(old[0], seen, told),
        "commit": lambda: transitions.commit_step(
            old[0], seen, transitions.StepCommit(next_step=9)
        ),
        "release": lambda: transitions.release(old[0]),
        "heartbeat": lambda: transitions.heartbeat([old[0]]),
    }.items():
        try:
            if write():
                wrong.append(f"{name} of a lost worker was accepted, {when}")
        except InterlockError:
            pass
    later = RunLease.objects.filter(run=run).values_list("until", flat=True).first()
    if later != until or fresh(run).version != now.version:
        wrong.append(f"a lost worker changed the run, {when}")
    return wrong + violations([run.id])


def two_beats(scene: Scene) -> Problems:
    """Four beats tick at once over a lost run, one whose wait is over, and one that nobody decided in time."""
    lost, late = scene.begin(), asking(scene)
    assert transitions.claim("gone", lost.id)
    expire(lost)
    Interrupt.objects.filter(run=late).update(expires_at="2000-01-01T00:00:00Z")
    outcomes = together(*[_tick] * 4)
    problems = [repr(o) for o in outcomes if isinstance(o, Exception)]
    given_back = [e.data["cause"] for e in lost.events.filter(type="run_status")].count(
        "lease_lost"
    )
    if given_back != 1:
        problems.append(f"the lost run was given back {given_back} times")
    expired = [e.data["cause"] for e in late.events.filter(type="run_status")].count("expired")
    if expired != 1:
        problems.append(f"the question expired {expired} times")
    problems += violations([lost.id, late.id])
    drive(late)
    return problems or scene.heal(lost) or violations([lost.id, late.id])


def _tick() -> None:
    reconcile.reconcile()
    decisions.expire_due()
    reconcile.dispatch()


def wrong_clocks(scene: Scene) -> Problems:
    """The clocks of worker, web and beat are days off, this way or that: only the database's counts."""
    problems = []
    for days in (2, -2):
        run, held = asking(scene), scene.world.run_of(scene.agent)
        taken = transitions.claim("me", held.id)
        assert taken
        with clock_off_by(dt.timedelta(days=days)):
            if reconcile.reconcile() or decisions.expire_due():
                problems.append(f"something ended early or was lost by a clock {days} days off")
            if transitions.heartbeat([taken[0]]) != {held.id}:
                problems.append("the lease was not renewed")
            decide_on(open_interrupts(run)[0], scene.world.bob)
            drive(run)
        transitions.release(taken[0])
        commands.cancel_run(actor(scene.world.alice), held)
        problems += scene.judge(run) + violations([held.id])
    return problems


@contextmanager
def clock_off_by(wrong: dt.timedelta) -> Iterator[None]:
    """This process believes that it is another day."""
    real = clock.now
    with (
        mock.patch.object(clock, "now", lambda: real() + wrong),
        mock.patch.object(timezone, "now", lambda: real() + wrong),
    ):
        yield


def lost_hints(scene: Scene) -> Problems:
    """Nothing that was sent over the broker arrives: the ticks find the run, at the start and after the decision."""
    run = scene.begin()
    sent: list[str] = []
    with mock.patch.object(reconcile.wake, "send", lambda run_id: sent.append(str(run_id)) or True):
        reconcile.dispatch()
        drive(run)
        decide_on(open_interrupts(run)[0], scene.world.bob)
        reconcile.dispatch()
    problems = (
        []
        if sent.count(str(run.id)) >= 2
        else [f"the ticks offered it {sent.count(str(run.id))} times"]
    )
    return problems or scene.heal(run) or scene.judge(run)


def _order(act: Callable[[Scene, Run, Interrupt], Any]) -> Callable[[Scene], Problems]:
    return lambda scene: waits_for_the_run_first(scene, act)


CASES: list[tuple[str, Callable[[Scene], Problems]]] = [
    ("a decision waits for the run first", _order(_decide)),
    ("a cancel waits for the run first", _order(_cancel)),
    ("an expiry waits for the run first", _order(_expire)),
    ("the end of a cancel waits for the run first", _order(_finish_cancel)),
    ("a second decision comes late", late_second_decision),
    ("four decide at once", decisions_at_once),
    ("a lost worker writes", stale_writes),
    ("four beats tick at once", two_beats),
    ("clocks are wrong", wrong_clocks),
    ("all hints are lost", lost_hints),
]

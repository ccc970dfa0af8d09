"""What was decided has no effect while it may be taken back, whoever is quicker."""

from __future__ import annotations

import datetime as dt
import random

import pytest

from approvals.deciding.changing import undo
from approvals.deciding.commands import Opinion, decide
from runtime_core import clock, decisions
from runtime_core.errors import DecisionConflict, Expired
from runtime_core.loop.drive import advance
from runtime_core.models import Interrupt, Run
from tests.runtime.tools import effects
from tests.runtime.world import (
    World,
    actor,
    call,
    decide_on,
    drive,
    events,
    fresh,
    open_interrupts,
    statuses,
    together,
    wait_until,
)

PAY = [{"calls": [call("ledger_append", text="pay-1")]}, {"text": "Done."}]


def decided(run: Run, world: World) -> Interrupt:
    """The run's request, approved on the page."""
    [interrupt] = open_interrupts(run)
    opinion = Opinion("approve", interrupt.version, interrupt.digest)
    return decide(actor(world.bob), interrupt.id, opinion, undoable=True)


def ends_in(interrupt: Interrupt, seconds: float) -> None:
    """The time to take it back, shortened."""
    until = clock.now() + dt.timedelta(seconds=seconds)
    Interrupt.objects.filter(id=interrupt.id).update(undo_until=until)
    Run.objects.filter(id=interrupt.run_id).update(available_at=until)


def test_nothing_runs_before_the_time_is_over_and_all_of_it_after(world: World) -> None:
    run = drive(world.start(PAY))
    interrupt = decided(run, world)

    assert (fresh(run).status, interrupt.status) == ("pending", "approved")
    assert not advance("early", run.id)
    assert effects() == []

    ends_in(interrupt, -1)
    assert drive(fresh(run)).status == "completed"
    assert effects() == ["pay-1"]
    with pytest.raises(DecisionConflict):
        undo(actor(world.bob), interrupt.id, 1)


def test_what_was_taken_back_is_decided_anew_and_runs_once(world: World) -> None:
    run = drive(world.start(PAY))
    interrupt = decided(run, world)
    undo(actor(world.bob), interrupt.id, 1)

    assert not advance("hasty", run.id)
    assert statuses(fresh(run))[-2:] == [
        ("interrupted", "pending", "decided"),
        ("pending", "interrupted", "undone"),
    ]
    [again] = open_interrupts(run)
    assert (again.id, again.version) == (interrupt.id, 2)
    decide_on(again, world.bob)
    assert drive(fresh(run)).status == "completed"
    assert effects() == ["pay-1"]


@pytest.mark.race
def test_of_a_worker_and_somebody_who_takes_it_back_one_has_their_way(world: World) -> None:
    agent = world.agent(PAY, name="payer")
    chance = random.Random(7)
    seen = set()
    for _ in range(8):
        before = len(effects())
        run = drive(world.run_of(agent))
        interrupt = decided(run, world)
        ends_in(interrupt, 0.3)
        at = clock.now() + dt.timedelta(seconds=0.3 + chance.uniform(-0.1, 0.05))

        def take_back(interrupt: Interrupt = interrupt, at: dt.datetime = at) -> Interrupt:
            wait_until(lambda: clock.now() >= at, every=0.001)
            return undo(actor(world.bob), interrupt.id, 1)

        def work(run: Run = run) -> bool:
            # Whoever comes too late finds nothing to claim; the run then waits for a person.
            return wait_until(
                lambda: advance("worker", run.id) or fresh(run).status == "interrupted", every=0.005
            )

        undone, _ = together(take_back, work)

        happened = len(effects()) - before
        took_back = isinstance(undone, Interrupt)
        assert took_back or isinstance(undone, DecisionConflict)
        assert happened == int(not took_back)
        assert fresh(run).status == ("interrupted" if took_back else "completed")
        seen.add(took_back)
    assert seen == {True, False}


def test_a8_nobody_answers_and_looking_changes_nothing(world: World) -> None:
    run = drive(world.start(PAY))
    [interrupt] = open_interrupts(run)
    for _ in range(3):
        assert decisions.expire_due() == 0
    Interrupt.objects.filter(id=interrupt.id).update(
        expires_at=clock.now() + dt.timedelta(minutes=5)
    )
    decide_on(interrupt, world.bob)
    assert drive(run).status == "completed"

    late = drive(world.start(PAY))
    [interrupt] = open_interrupts(late)
    Interrupt.objects.filter(id=interrupt.id).update(
        expires_at=clock.now() - dt.timedelta(seconds=1)
    )
    # Too late by the database's clock, whether or not a sweep has come by.
    with pytest.raises(Expired) as refused:
        decide_on(interrupt, world.bob)
    assert refused.value.http_status == 410
    assert together(decisions.expire_due, decisions.expire_due).count(1) == 1
    with pytest.raises(Expired):
        decide_on(interrupt, world.bob)
    interrupt.refresh_from_db()
    assert (interrupt.status, interrupt.decided_by, interrupt.action) == ("expired", None, "")
    assert drive(late).status == "completed"
    assert effects() == ["pay-1"]
    assert sum("rejected" in e.data["message"] for e in events(late, "progress")) <= 1

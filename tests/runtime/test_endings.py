"""A run ends once. Whoever comes second finds it ended and changes nothing."""

from __future__ import annotations

import pytest
from django.db import connection

from runtime_core import commands, decisions, transitions
from runtime_core.errors import Fenced, IllegalTransition, InterlockError
from runtime_core.loop.drive import advance
from runtime_core.models import Interrupt, Run
from runtime_core.scheduling import reconcile
from runtime_core.states import ENDED, RUN_MOVES, RunStatus, check_move
from runtime_core.transitions import NewEvent, Seen, StepCommit
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
)

pytestmark = pytest.mark.race

ENDS = {RunStatus.COMPLETED: "finished", RunStatus.FAILED: "error", RunStatus.TIMED_OUT: "deadline"}


def ended_once(run: Run) -> Run:
    """The run, after a check that it ended once and that this is the last thing told of it."""
    run = fresh(run)
    assert run.state.ended, run.status
    told = events(run)
    assert [e.type for e in told].count("done") == 1
    assert told[-1].type == "done"
    assert told[-1].data["status"] == run.status == statuses(run)[-1][1]
    assert sum(to in set(ENDED) for _, to, _ in statuses(run)) == 1
    return run


def expected(outcome: object) -> bool:
    """True if the racer won; a typed refusal is a loss, anything else is a defect."""
    if isinstance(outcome, InterlockError):
        return False
    assert not isinstance(outcome, Exception), repr(outcome)
    return True


@pytest.mark.timeout(120)
def test_d2_complete_fail_time_out_cancel_and_a_lost_lease_at_once(world: World) -> None:
    agent = world.agent([{"text": "x"}], name="racer")
    for _ in range(40):
        five_ends(world, agent)


def five_ends(world: World, agent: str) -> None:
    """One round: a worker's three ends, a reaper and a cancel."""
    run = world.run_of(agent)
    claimed = transitions.claim("racer", run.id)
    assert claimed
    claim, last_seq = claimed
    seen = Seen(fresh(run).version, last_seq, False, False)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE run_lease SET until = now() - interval '1 s'")

    outcomes = together(
        *(
            lambda to=to, cause=cause: transitions.commit_step(
                claim, seen, StepCommit(to=to, cause=cause)
            )
            for to, cause in ENDS.items()
        ),
        lambda: transitions.reap(),
        lambda: commands.cancel_run(actor(world.alice), run),
    )

    finished = [expected(o) for o in outcomes[:3]]
    reaped = bool(outcomes[3])
    assert sum(finished) + reaped == 1
    assert all(isinstance(o, Fenced) for o in outcomes[:3] if isinstance(o, Exception))
    if expected(outcomes[4]) and reaped and not fresh(run).state.ended:
        advance("heir", run.id)
    elif reaped and not fresh(run).state.ended:
        raise AssertionError("a cancel of a run that has not ended is never refused")
    run = ended_once(run)
    with pytest.raises(IllegalTransition):
        commands.cancel_run(actor(world.alice), run)
    assert not advance("late", run.id)


@pytest.mark.timeout(120)
def test_d2_claim_cancel_and_deadline_of_a_queued_run_at_once(world: World) -> None:
    agent = world.agent([{"text": "x"}], name="queued")
    for _ in range(30):
        three_ends(world, agent)


def three_ends(world: World, agent: str) -> None:
    """One round: a worker, a cancel and the deadline."""
    run = world.run_of(agent)
    Run.objects.filter(id=run.id).update(deadline_at="2020-01-01T00:00Z")
    outcomes = together(
        lambda: advance("worker", run.id),
        lambda: commands.cancel_run(actor(world.alice), run),
        reconcile.reconcile,
    )
    for outcome in outcomes:
        expected(outcome)
    run = ended_once(run)
    assert run.status in ("cancelled", "timed_out", "completed")
    if run.status == "cancelled":
        with pytest.raises(IllegalTransition):
            commands.retry_run(actor(world.alice), run)


@pytest.mark.timeout(120)
def test_d2_decide_cancel_and_expire_at_once(world: World) -> None:
    agent = world.agent(
        [{"calls": [call("ask_human", question="?")]}, {"text": "x"}], name="asking"
    )
    for n in range(20):
        decide_or_end(world, agent, late=n % 2 == 1)


def decide_or_end(world: World, agent: str, late: bool) -> None:
    """One round: a decision, a cancel and the expiry, which is due if it is `late`."""
    run = drive(world.run_of(agent))
    [interrupt] = open_interrupts(run)
    if late:
        Interrupt.objects.filter(id=interrupt.id).update(expires_at="2020-01-01T00:00Z")
    outcomes = together(
        lambda: decide_on(interrupt, world.bob, "respond", response="yes"),
        lambda: commands.cancel_run(actor(world.alice), run),
        decisions.expire_due,
    )
    assert expected(outcomes[1])
    decided = expected(outcomes[0])
    assert not (decided and late), "what is too late is not decided"
    interrupt.refresh_from_db()
    assert interrupt.status in ({"expired", "withdrawn"} if late else {"answered", "withdrawn"})
    assert decided == (interrupt.status == "answered")
    run = fresh(run)
    if not run.state.ended:
        run = drive(run)
    assert ended_once(run).status == "cancelled"


def test_no_move_leads_out_of_an_end_but_a_retry() -> None:
    for (source, target), causes in RUN_MOVES.items():
        if source in ENDED:
            assert (target, causes) == (RunStatus.PENDING, frozenset({"retry"}))


def test_every_move_that_the_table_does_not_list_is_refused() -> None:
    causes = frozenset().union(*RUN_MOVES.values())
    for source in RunStatus:
        for target in RunStatus:
            for cause in causes - RUN_MOVES.get((source, target), frozenset()):
                with pytest.raises(IllegalTransition):
                    check_move(source, target, cause)


def test_a_worker_cannot_make_a_move_that_is_not_in_the_table(world: World) -> None:
    run = world.start([{"text": "x"}])
    claimed = transitions.claim("me", run.id)
    assert claimed
    seen = Seen(fresh(run).version, claimed[1], False, False)
    with pytest.raises(IllegalTransition):
        transitions.commit_step(
            claimed[0], seen, StepCommit(to=RunStatus.WAITING, cause="finished")
        )
    with pytest.raises(IllegalTransition):
        transitions.move(run.id, RunStatus.PENDING, "decided")
    assert fresh(run).status == "running"


@pytest.mark.timeout(120)
def test_c5_eight_writers_leave_no_hole_and_a_rolled_back_one_none_either(world: World) -> None:
    from django.db import transaction

    run = world.start([{"text": "x"}])
    start = run.last_seq

    class Undone(Exception):
        pass

    def write(writer: int) -> None:
        for n in range(50):
            batch = [NewEvent("progress", {"message": f"{writer}/{n}/{i}"}) for i in range(10)]
            try:
                with transaction.atomic():
                    transitions.tell(run.id, batch)
                    if n % 7 == 3:
                        raise Undone
            except Undone:
                pass

    def read() -> list[int]:
        from runtime_core.models import Event

        seen: list[int] = [start]
        while len(seen) <= kept:
            rows = Event.objects.filter(run=run, seq__gt=seen[-1]).order_by("seq")
            seen += rows.values_list("seq", flat=True)
        return seen

    kept = 8 * 10 * sum(n % 7 != 3 for n in range(50))
    outcomes = together(*(lambda w=w: write(w) for w in range(8)), read)
    assert outcomes[:8] == [None] * 8
    assert outcomes[8] == list(range(start, start + kept + 1))
    assert fresh(run).last_seq == start + kept
    told = [e.data["message"] for e in events(run, "progress")]
    for writer in range(8):
        own = [tuple(map(int, m.split("/")[1:])) for m in told if m.startswith(f"{writer}/")]
        assert own == sorted(own)

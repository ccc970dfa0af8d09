"""What a restart finds, and what two runs may not share: each run comes to its own end, once."""

from __future__ import annotations

import pytest
from django.db import connection

from runtime_core import commands, transitions
from runtime_core.errors import Fenced, ThreadBusy
from runtime_core.loop.drive import advance
from runtime_core.models import Checkpoint, Message, Run, RunLease
from runtime_core.scheduling import reconcile
from runtime_core.states import RunStatus
from runtime_core.transitions import Seen, StepCommit
from tests.runtime.tools import at_point, effects
from tests.runtime.world import (
    World,
    actor,
    call,
    calls,
    drive,
    events,
    fresh,
    open_interrupts,
    statuses,
    together,
)
from tests.runtime.zygote import Zygote

ENDS = [{"text": "ok"}]


def conversation(run: Run) -> list[tuple[int, str]]:
    rows = Message.objects.filter(thread_id=run.thread_id).order_by("position")
    return [(row.position, row.body) for row in rows]


def test_b7_runs_with_the_same_words_share_nothing(world: World) -> None:
    agent = world.agent([{"calls": [call("note", text="n")]}, {"text": "ok"}], name="twin")
    one, two = (world.run_of(agent, input="the same words") for _ in range(2))
    outcomes = together(lambda: drive(one), lambda: drive(two))
    assert [run.status for run in outcomes] == ["completed", "completed"]
    assert one.thread_id != two.thread_id
    keys = [calls(run)[0].idempotency_key for run in (one, two)]
    assert len(set(keys)) == len(effects()) == 2, "two runs, two effects"
    for run in (one, two):
        assert Checkpoint.objects.filter(run=run).exists()
        assert {m.run_id for m in Message.objects.filter(thread_id=run.thread_id)} == {run.id}


def test_b7_of_two_starts_on_one_thread_one_is_refused_and_a_late_old_run_harms_no_newer_one(
    world: World,
) -> None:
    agent = world.agent(ENDS, name="one")
    thread = commands.create_thread(actor(world.alice), world.project)
    begun = together(*[lambda: world.run_of(agent, thread_id=thread.id)] * 2)
    [old] = [run for run in begun if isinstance(run, Run)]
    [refused] = [error for error in begun if isinstance(error, Exception)]
    assert isinstance(refused, ThreadBusy)
    commands.pause_run(actor(world.alice), old)
    with pytest.raises(ThreadBusy):
        world.run_of(agent, thread_id=thread.id)  # it rests, and is still the thread's

    commands.resume_run(actor(world.alice), old)
    claimed = transitions.claim("late", old.id)
    assert claimed and not Checkpoint.objects.filter(run=old).exists()
    seen = Seen(fresh(old).version, fresh(old).last_seq, False, False)
    transitions.release(claimed[0])
    commands.cancel_run(actor(world.alice), old)
    newer = drive(world.run_of(agent, thread_id=thread.id))
    assert newer.status == "completed"
    kept = conversation(newer), list(Checkpoint.objects.filter(run=newer).values())

    late = StepCommit(to=RunStatus.COMPLETED, cause="finished", output="late")
    with pytest.raises(Fenced):
        transitions.commit_step(claimed[0], seen, late)
    assert fresh(old).status == "cancelled"
    assert (conversation(newer), list(Checkpoint.objects.filter(run=newer).values())) == kept


def lost(world: World, zygote: Zygote, tool: str, point: str, **args: object) -> Run:
    """A run whose worker was killed in this tool, and whose lease is over."""
    run = world.start([{"calls": [call(tool, **args)]}, {"text": "ok"}], permissions={"*": "allow"})
    at_point("kill", point).touch()
    assert zygote.drive(run.id)["signal"] == 9
    end_lease(run)
    return run


def end_lease(run: Run) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE run_lease SET until = clock_timestamp() - interval '1 s' WHERE run_id = %s",
            [run.id],
        )


@pytest.mark.faults
def test_d7_each_state_that_a_restart_finds_comes_to_its_own_end(
    world: World, zygote: Zygote
) -> None:
    queued = world.start(ENDS)
    elsewhere = world.start(ENDS)
    assert transitions.claim("elsewhere", elsewhere.id)
    in_model = world.start(ENDS)
    assert transitions.claim("gone", in_model.id)
    end_lease(in_model)
    in_note = lost(world, zygote, "note", "after-note", text="n")
    in_effect = lost(world, zygote, "ledger_append", "after-effect", text="pay")
    asks = drive(world.start([{"calls": [call("ledger_append", text="x")]}, {"text": "ok"}]))
    parked = world.start(ENDS)
    Run.objects.filter(id=parked.id).update(
        status="waiting",
        available_at=parked.available_at + (fresh(asks).deadline_at - asks.started_at),
    )
    cancelling = world.start(ENDS)
    assert transitions.claim("gone", cancelling.id)
    commands.cancel_run(actor(world.alice), cancelling)
    end_lease(cancelling)
    untouched = {run.id: fresh(run).version for run in (elsewhere, asks, parked)}

    for _ in range(2):
        outcomes = together(reconcile.reconcile, reconcile.reconcile)
        assert not [error for error in outcomes if isinstance(error, Exception)], outcomes
        reconcile.dispatch()
        while advance("heir"):
            pass

    ends = {run.id: fresh(run) for run in (queued, in_model, in_note)}
    assert {run.status for run in ends.values()} == {"completed"}
    assert fresh(in_effect).status == "interrupted"
    assert open_interrupts(in_effect)[0].kind == "outcome_unknown"
    assert fresh(cancelling).status == "cancelled"
    assert {run_id: Run.objects.get(id=run_id).version for run_id in untouched} == untouched
    assert RunLease.objects.get().worker == "elsewhere"
    assert effects().count("pay") == 1
    assert len([line for line in effects() if line.endswith(":n")]) == 1
    for run in (in_model, in_note, in_effect, cancelling):
        causes = [cause for *_, cause in statuses(run)]
        assert causes.count("lease_lost") == 1, "by one of the two, once"
    for run in ends.values():
        assert [e.type for e in events(run)].count("done") == 1

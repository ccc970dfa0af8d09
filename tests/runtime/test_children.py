"""Case A10: agents that work for another agent are runs of their own, durable, each with its own approvals."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.test import Client

from runtime_core import commands, transitions
from runtime_core.errors import Fenced, IllegalTransition, InvalidInput
from runtime_core.limits import limits
from runtime_core.loop import children, stopping
from runtime_core.loop.drive import advance
from runtime_core.models import Interrupt, Run
from runtime_core.scheduling import reconcile
from runtime_core.transitions import NewEvent
from tests.runtime.tools import effects, effects_file
from tests.runtime.workers import Worker
from tests.runtime.world import (
    World,
    actor,
    call,
    calls,
    decide_on,
    drive,
    events,
    expire_lease,
    fresh,
    open_interrupts,
    script,
    statuses,
    wait_until,
)
from tests.runtime.zygote import Zygote

WORKER = [
    {"calls": [call("ledger_append", text="step1-{{n}}")]},
    {"calls": [call("ledger_append", text="step2-{{n}}")]},
    {"text": "did {{n}}"},
]
AUTO = {"ledger_append": [{"verdict": "allow", "constraints": {"text": {"glob": "step1-*"}}}]}


def worker_agent(world: World, turns: list[dict[str, Any]] = WORKER, **more: Any) -> None:
    """The one agent named Worker; the number that it works on is in its task."""
    path = script(turns, vars={"n": r"number (\w+)"})
    definition = {"script": str(path), "permissions": AUTO, **more}
    world.agent([], name="Worker", **definition)


def supervisor(world: World, *tasks: str, **more: Any) -> Run:
    """A run of a supervisor that hands these tasks to Worker in one turn, and then ends."""
    handed = [call("delegate", agent="Worker", task=f"number {task}") for task in tasks]
    definition = {
        "engine": "supervisor",
        "agents": ["Worker"],
        "tools": more.pop("tools", []),
        "permissions": {"*": "allow"},
        **more,
    }
    turns = [{"calls": [*handed, *definition.pop("beside", [])]}, {"text": "all done"}]
    return world.start(turns, **definition)


def family(run: Run) -> list[Run]:
    return list(Run.objects.filter(parent=run).order_by("path", "created_at"))


def go_on(*runs: Run) -> None:
    """Whoever is due is driven, until nobody is."""
    while advance("test"):
        pass


def test_a10_two_workers_of_one_name_survive_the_kill_of_all_and_are_approved_apart(
    world: World, zygote: Zygote
) -> None:
    worker_agent(world)
    run = supervisor(world, "1", "2")
    zygote.drive(run.id)
    first, second = family(run)
    assert (fresh(run).status, first.status, second.status) == ("waiting", "pending", "pending")
    for child in (first, second):
        zygote.drive(child.id)  # the process is gone afterwards: nothing of a wait is in memory
    assert effects() == ["step1-1", "step1-2"]
    assert [fresh(r).status for r in (run, first, second)] == [
        "waiting",
        "interrupted",
        "interrupted",
    ]

    inbox = Client()
    inbox.force_login(world.bob)
    page = inbox.get(f"/inbox/{open_interrupts(second)[0].id}/").content.decode()
    assert "Works for" in page and second.path[0][1] in page and "› Worker" in page
    inbox.force_login(world.carol)
    assert inbox.get(f"/runs/{second.id}/").status_code == 404
    decide_on(open_interrupts(second)[0], world.bob)
    zygote.drive(second.id)

    assert effects() == ["step1-1", "step1-2", "step2-2"]
    assert [fresh(r).status for r in (run, first, second)] == [
        "waiting",
        "interrupted",
        "completed",
    ]
    decide_on(open_interrupts(first)[0], world.bob)
    zygote.drive(first.id)
    assert fresh(run).status == "pending", "the end of the last child wakes its parent"
    zygote.drive(run.id)

    run = fresh(run)
    assert (run.status, run.output) == ("completed", "all done")
    assert effects() == ["step1-1", "step1-2", "step2-2", "step2-1"]
    assert [c.result_text for c in calls(run)] == ["did 1", "did 2"]
    assert len(family(run)) == 2, "no child was started twice"
    assert [child.path for child in family(run)] == [
        [[run.agent.name, one.call_id]] for one in calls(run)
    ]
    assert {child.created_by_id for child in family(run)} == {world.alice.pk}
    assert [move[2] for move in statuses(run)] == [
        "created",
        "claim",
        "children",
        "answered",
        "claim",
        "finished",
    ]
    assert run.input_tokens > sum(child.input_tokens for child in family(run)) > 0


def test_a10_a_worker_killed_around_the_start_or_the_end_of_a_child_repeats_nothing(
    world: World, zygote: Zygote
) -> None:
    worker_agent(world, [{"calls": [call("ledger_append", text="step1-{{n}}")]}, {"text": "did"}])
    points = [
        f"{name}.{at}" for name in ("child", "answered") for at in ("before", "inside", "after")
    ]
    for number, only in enumerate(points):
        run = supervisor(world, str(number), name=f"lead-{number}")
        of_parent = only.startswith("child")
        died = zygote.drive(run.id, at=0 if of_parent else -1, only=only)
        if of_parent:
            expire_lease(run)
        else:
            died = zygote.drive(family(run)[0].id, at=0, only=only)
            reconcile.dispatch()
        assert died["signal"] == 9, only
        go_on()
        [child] = family(run)
        assert child.status == "completed", only
        assert (fresh(run).status, fresh(run).output) == ("completed", "all done"), only
        assert effects().count(f"step1-{number}") == 1


def test_cancelling_a_supervisor_stops_its_children_down_to_their_work_first(
    world: World, worker: Worker
) -> None:
    worker_agent(
        world,
        [{"calls": [call("wait_for_stop")]}, {"text": "never"}],
        tools=["wait_for_stop"],
        permissions={"*": "allow"},
    )
    run = supervisor(world, "1")
    wait_until(effects_file().with_name("waiting").exists, 20, "the child's tool works")
    wait_until(lambda: fresh(run).status == "waiting")
    [child] = family(run)

    commands.cancel_run(actor(world.alice), run)

    wait_until(lambda: fresh(run).state.ended, 10, "cancelled")
    run, child = fresh(run), fresh(child)
    assert (run.status, child.status) == ("cancelled", "cancelled")
    assert child.ended_at and run.ended_at and child.ended_at <= run.ended_at, "its child first"
    assert [c.status for c in (*calls(run), *calls(child))] == ["cancelled", "cancelled"]
    assert events(run)[-1].type == events(child)[-1].type == "done"


def test_a_stop_reaches_children_wherever_they_and_their_parent_are(world: World) -> None:
    worker_agent(world)
    run = supervisor(
        world,
        "1",
        "2",
        beside=[call("ledger_append", text="own")],
        tools=["ledger_append"],
        permissions={"*": "allow", "ledger_append": "ask"},
    )
    drive(run)
    assert fresh(run).status == "interrupted", "its own question is asked while its children work"
    first, second = family(run)
    drive(first)
    asked = [*open_interrupts(run), *open_interrupts(first)]
    assert len(asked) == 2

    commands.cancel_run(actor(world.alice), run)

    assert {fresh(r).status for r in (run, first, second)} == {"cancelled"}
    assert set(Interrupt.objects.values_list("status", flat=True)) == {"withdrawn"}
    with pytest.raises(IllegalTransition):
        commands.retry_run(actor(world.alice), first)


def test_only_one_child_is_cancelled_and_its_parent_is_told(world: World) -> None:
    worker_agent(world)
    run = supervisor(world, "1")
    drive(run)
    [child] = family(run)
    commands.cancel_run(actor(world.alice), child)
    run = drive(run)
    assert (run.status, run.output) == ("completed", "all done")
    [handed] = calls(run)
    assert (handed.status, handed.error_code) == ("failed", "child_cancelled")


def test_the_child_of_a_run_that_is_gone_is_stopped(world: World) -> None:
    worker_agent(world)
    run = supervisor(world, "1")
    drive(run)
    [child] = family(run)
    drive(child)
    with connection.cursor() as cursor:  # as a defect of ours would leave it
        cursor.execute(
            "UPDATE run SET status = 'failed', ended_at = clock_timestamp() WHERE id = %s", [run.id]
        )
    reconcile.reconcile()
    assert fresh(child).status == "cancelled"


def test_a_child_may_spend_no_more_than_its_parents_share_and_its_parent_pays(world: World) -> None:
    worker_agent(
        world,
        [{"text": "did {{n}}", "usage": {"input_tokens": 300, "output_tokens": 7}}],
        limits={"max_tokens": 1_000_000, "max_steps": 900, "deadline_s": 86_400},
    )
    run = supervisor(
        world, "1", "2", limits={"max_tokens": 10_000, "max_steps": 9, "deadline_s": 600}
    )
    Run.objects.filter(id=run.id).update(priority=3)
    run = drive(run)
    left = 10_000 - run.input_tokens - run.output_tokens
    first, second = family(run)
    assert first.max_tokens == left // 2 and second.max_tokens == left - left // 2
    assert (first.priority, second.priority) == (3, 3)
    assert first.max_steps < 9 and first.deadline_s <= 600
    go_on()
    run, first = fresh(run), fresh(first)
    assert run.status == "completed", run.error
    assert (
        run.input_tokens + run.output_tokens
        > 2 * (first.input_tokens + first.output_tokens)
        == 2 * 307
    )


def test_a_parents_clock_runs_while_its_children_work_and_not_while_they_wait(world: World) -> None:
    worker_agent(world)
    run = supervisor(world, "1")
    drive(run)
    [child] = family(run)
    before = fresh(run).deadline_at
    drive(child)
    hour, work = dt.timedelta(hours=1), dt.timedelta(seconds=300)
    # An hour passes: for five minutes of it the child worked, then it waited for a person.
    for one, waited in ((run, hour), (child, hour - work)):
        Run.objects.filter(id=one.id).update(
            stopped_at=F("stopped_at") - waited, deadline_at=F("deadline_at") - hour
        )
    reconcile.reconcile()
    assert [fresh(r).status for r in (run, child)] == ["waiting", "interrupted"]
    decide_on(open_interrupts(child)[0], world.bob)
    drive(child)
    after = fresh(run)
    assert after.status == "pending" and before and after.deadline_at
    assert 270 < (before - after.deadline_at).total_seconds() < 330, (
        "the work counts, the wait does not"
    )
    assert drive(run).status == "completed"


def test_depth_width_and_names_of_agents_are_bounded(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = script([{"calls": [call("delegate", agent="Worker", task="again")]}, {"text": "back"}])
    world.agent(
        [],
        name="Worker",
        script=str(path),
        engine="supervisor",
        agents=["Worker"],
        tools=[],
        permissions={"*": "allow"},
    )
    run = supervisor(world, "1")
    go_on()
    assert fresh(run).status == "completed"
    depths = [len(one.path) for one in Run.objects.order_by("created_at")]
    assert depths == [0, 1, 2, 3] and limits().child_depth == 3
    deepest = Run.objects.order_by("created_at").last()
    assert deepest and "at most 3 times" in (calls(deepest)[0].result_text or "")

    stranger = supervisor(world, "1", agents=["Nobody"])
    assert "no agent 'Worker'" in (calls(drive(stranger))[0].result_text or "")
    few = dataclasses.replace(limits(), children_per_run=1)
    monkeypatch.setattr(children, "limits", lambda: few)
    wide = supervisor(world, "1", "2")
    drive(wide)
    go_on()
    assert [c.status for c in calls(wide)] == ["succeeded", "failed"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"engine": "supervisor"},
        {"engine": "supervisor", "agents": [1]},
        {"agents": ["Worker"]},
        {"tools": ["delegate"]},
    ],
)
def test_an_agent_that_cannot_hand_work_on_is_refused(world: World, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="agents"):
        world.agent([{"text": "x"}], **wrong)


def test_an_end_that_told_nobody_is_found_by_the_tick(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker_agent(world, [{"text": "did"}])
    run = supervisor(world, "1")
    drive(run)
    with monkeypatch.context() as patch:
        patch.setattr(stopping, "wake_parent", lambda _: False)
        drive(family(run)[0])
    assert fresh(run).status == "waiting"
    reconcile.dispatch()
    assert drive(run).status == "completed"


def test_what_does_not_stop_is_stopped_by_force_with_its_children_and_can_write_nothing(
    world: World,
) -> None:
    worker_agent(world)
    run = supervisor(
        world, "1", beside=[call("ledger_append", text="own")], tools=["ledger_append"]
    )
    with pytest.raises(IllegalTransition, match="Cancel the run first"):
        commands.force_stop(actor(world.alice), run)
    drive(run)
    [child] = family(run)
    held = transitions.claim("deaf", child.id)
    assert held
    commands.cancel_run(actor(world.alice), run)
    assert [fresh(r).status for r in (run, child)] == ["waiting", "running"]
    with pytest.raises(IllegalTransition, match="10 s"):
        commands.force_stop(actor(world.alice), run)
    eleven = dt.timedelta(seconds=11)
    Run.objects.filter(id=run.id).update(cancel_requested_at=F("cancel_requested_at") - eleven)

    commands.force_stop(actor(world.alice), run)

    assert [fresh(r).status for r in (run, child)] == ["cancelled", "cancelled"]
    assert ("running", "pending", "forced") in statuses(child)
    with pytest.raises(Fenced):
        seen = transitions.Seen(fresh(child).version, fresh(child).last_seq, False, False)
        transitions.append(held[0], seen, [NewEvent("progress", {"message": "late"})])

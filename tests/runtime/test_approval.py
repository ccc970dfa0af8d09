"""What was approved is what runs, and only once, whoever races and whatever is lost on the way."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from approvals.models import Decision
from runtime_core.errors import AlreadyDecided
from runtime_core.loop import restore
from runtime_core.loop.drive import advance
from runtime_core.models import Interrupt, Membership, Role, Run, ToolCall
from runtime_core.tools import registry
from tests.runtime.tools import effects
from tests.runtime.world import (
    World,
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
    together,
)
from tests.runtime.zygote import Zygote

PAY = [{"calls": [call("ledger_append", text="pay-1")]}, {"text": "Done."}]
NUMBERS = '{"amount":1e22,"z":-0.0,"b":1,"a":2}'


@pytest.mark.race
def test_a1_of_ten_approvals_and_ten_rejections_one_counts(world: World) -> None:
    crowd = [User.objects.create_user(f"crowd{n}") for n in range(20)]
    Membership.objects.bulk_create(
        Membership(project=world.project, user=user, role=Role.APPROVER) for user in crowd
    )
    agent = world.agent(PAY, name="payer")
    for _ in range(6):
        one_of_twenty(world, agent, crowd)


def one_of_twenty(world: World, agent: str, crowd: list[User]) -> None:
    """One round: many decide at once, one counts, and what they decided happens at most once."""
    before = len(effects())
    run = drive(world.run_of(agent))
    [interrupt] = open_interrupts(run)

    outcomes = together(
        *(
            lambda user=user, n=n: decide_on(
                interrupt, user, ("approve", "reject")[n % 2], reason="because"
            )
            for n, user in enumerate(crowd)
        )
    )

    won = [o for o in outcomes if isinstance(o, Interrupt)]
    assert len(won) == 1
    assert sum(isinstance(o, AlreadyDecided) for o in outcomes) == 19
    assert Decision.objects.filter(interrupt=interrupt).count() == 1
    assert statuses(run).count(("interrupted", "pending", "decided")) == 1
    run = drive(run)
    assert run.status == "completed"
    approved = won[0].status == "approved"
    assert len(effects()) - before == int(approved)
    for _ in range(2):
        assert not advance("again", run.id)
    assert len(effects()) - before == int(approved)


def reworded(run: Run, text: str) -> None:
    """From now on the model would say something else in the same place."""
    path = Path(run.agent_version.definition["script"])
    script([{"calls": [call("ledger_append", text=text)]}, {"text": "Done."}]).replace(path)


@pytest.mark.faults
@pytest.mark.parametrize("point", ["claim.after", "commit.before", "commit.after", "tool.before"])
def test_a2_a_kill_after_the_approval_never_changes_what_runs(
    world: World, zygote: Zygote, point: str
) -> None:
    run = drive(
        world.start([{"calls": [call("ledger_append", text="reviewed-value")]}, {"text": "x"}])
    )
    decide_on(open_interrupts(run)[0], world.bob)
    reworded(fresh(run), "changed-value")

    assert zygote.drive(run.id, at=0, only=point)["signal"] == 9
    expire_lease(run)
    run = drive(run)
    if run.status == "interrupted":  # the intent was stored: nobody knows whether it ran
        [unknown] = open_interrupts(run)
        assert unknown.kind == "outcome_unknown"
        decide_on(unknown, world.bob)
        run = drive(run)

    assert run.status == "completed"
    assert effects() == ["reviewed-value"]


def test_a2_numbers_that_json_stores_otherwise_are_no_mismatch(world: World) -> None:
    run = drive(
        world.start(
            [{"calls": [{"tool": "record", "raw_args": NUMBERS}]}, {"text": "x"}],
            permissions={"record": "ask"},
        )
    )
    [interrupt] = open_interrupts(run)
    assert calls(run)[0].args_text == NUMBERS
    decide_on(interrupt, world.bob)
    run = drive(run)

    assert run.status == "completed"
    assert effects() == ["1e+22 -0.0 1 2"]
    assert Interrupt.objects.filter(run=run).count() == 1


def test_a2_arguments_that_changed_after_the_approval_are_asked_again(world: World) -> None:
    run = drive(world.start(PAY))
    decide_on(open_interrupts(run)[0], world.bob)
    call = ToolCall.objects.get(run=run)
    call.args_text = '{"text": "somebody else\'s"}'
    call.save()

    run = drive(run)

    assert run.status == "interrupted"
    assert effects() == []
    [again] = open_interrupts(run)
    assert again.kind == "drift"
    assert "not what was approved" in again.reason
    decide_on(again, world.bob, "reject", reason="who changed this?")
    assert drive(run).status == "completed"
    assert effects() == []


def test_a2_a_tool_that_changed_after_the_approval_is_asked_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = drive(world.start(PAY))
    decide_on(open_interrupts(run)[0], world.bob)
    tool = registry()["ledger_append"]
    changed = dataclasses.replace(tool, spec=dataclasses.replace(tool.spec, digest="f" * 64))
    monkeypatch.setattr(restore, "registry", lambda: {**registry(), "ledger_append": changed})

    run = drive(run)
    [again] = open_interrupts(run)
    assert (again.kind, effects()) == ("drift", [])
    decide_on(again, world.bob)
    assert drive(run).status == "completed"
    assert effects() == ["pay-1"]


def test_a4_an_approver_who_lost_the_right_before_the_effect_is_asked_for_again(
    world: World,
) -> None:
    run = drive(world.start(PAY))
    decide_on(open_interrupts(run)[0], world.bob)
    Membership.objects.filter(user=world.bob).update(role=Role.VIEWER)

    run = drive(run)

    assert effects() == []
    [again] = open_interrupts(run)
    assert again.kind == "drift"


def test_a5_an_answer_is_for_one_question_and_no_recovery_gives_it_to_the_next(
    world: World,
) -> None:
    run = drive(
        world.start(
            [
                {"calls": [call("ask_human", question="first?")]},
                {"calls": [call("ask_human", question="second?")]},
                {"text": "both"},
            ]
        )
    )
    [first] = open_interrupts(run)
    decide_on(first, world.bob, "respond", response="first")
    run = drive(run)
    [second] = open_interrupts(run)

    expire_lease(run)
    assert not advance("recovery", run.id)
    assert fresh(run).status == "interrupted"
    assert [i.id for i in open_interrupts(run)] == [second.id]

    decide_on(second, world.bob, "respond", response="second")
    run = drive(run)
    assert run.status == "completed"
    assert [c.result_text for c in calls(run)] == ["first", "second"]
    with pytest.raises(AlreadyDecided):
        decide_on(first, world.bob, "respond", response="another")


def test_e4_a_decision_whose_transaction_fails_leaves_all_as_it_was(world: World) -> None:
    run = drive(world.start(PAY))
    [interrupt] = open_interrupts(run)
    before = len(events(run))

    class Broken(Exception):
        pass

    with pytest.raises(Broken), transaction.atomic():
        decide_on(interrupt, world.bob)
        raise Broken

    assert [i.id for i in open_interrupts(run)] == [interrupt.id]
    assert fresh(run).status == "interrupted"
    assert len(events(run)) == before
    assert not Decision.objects.filter(interrupt=interrupt).exists()
    assert not advance("hinted too early", run.id)
    assert effects() == []


def test_an_idempotency_key_belongs_to_the_call_and_to_nothing_else(world: World) -> None:
    turns = [{"calls": [call("note", text="same"), call("note", text="same")]}, {"text": "x"}]
    first, second = (calls(drive(world.start(turns))) for _ in range(2))
    keys = {c.idempotency_key for c in [*first, *second]}
    assert len(keys) == 4
    assert all(json.loads(c.args_text) == {"text": "same"} for c in first)

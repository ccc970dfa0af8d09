"""One decision on one interrupt: who may, on what, and what is kept of it."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest

from approvals.deciding.commands import Opinion, decide
from approvals.deciding.guard import guard
from approvals.models import Decision
from approvals.queries import waiting_for
from runtime_core.commands import cancel_run
from runtime_core.errors import (
    AlreadyDecided,
    Expired,
    InvalidPayload,
    NotAllowed,
    NotFound,
    StaleVersion,
    Withdrawn,
)
from runtime_core.ids import new_id
from runtime_core.models import Interrupt, Membership, Run
from runtime_core.values import Actor
from tests.approvals.world import World, audited

REFUND = {"order_id": "A-1001", "amount": "20.00", "reason": "Broken on arrival."}


def as_actor(user: Any, via: str = "web") -> Actor:
    return Actor(user.pk, user.get_username(), via)


def approve(interrupt: Interrupt) -> Opinion:
    return Opinion("approve", interrupt.version, interrupt.digest)


def reject(interrupt: Interrupt, reason: str = "Not needed.") -> Opinion:
    return Opinion("reject", interrupt.version, interrupt.digest, reason=reason)


def test_an_approval_settles_the_interrupt_and_sets_the_run_going(world: World) -> None:
    interrupt = world.ask()

    settled = decide(as_actor(world.approver), interrupt.id, approve(interrupt))

    assert (settled.status, settled.decided_by_id) == ("approved", world.approver.pk)
    assert Run.objects.get(id=interrupt.run_id).status == "pending"
    kept = Decision.objects.get(interrupt=interrupt)
    assert (kept.actor_name, kept.action, kept.version, kept.digest, kept.via) == (
        "approver",
        "approve",
        1,
        interrupt.digest,
        "web",
    )


def test_it_keeps_digests_but_no_arguments_in_the_audit(world: World) -> None:
    interrupt = world.ask("issue_refund", REFUND, risk="high")
    edited = {**REFUND, "amount": "5.00"}
    opinion = Opinion("edit", 1, interrupt.digest, args=edited, reason="Part of it.")

    decide(as_actor(world.approver), interrupt.id, opinion)

    (entry,) = audited("interrupt.decided")
    assert entry["decision"] == "edit"
    assert entry["args_before"] != entry["args_after"]
    assert "20.00" not in json.dumps(entry)
    assert "5.00" not in json.dumps(entry)


def test_an_edit_is_what_runs(world: World) -> None:
    interrupt = world.ask("issue_refund", REFUND, risk="high")
    edited = {**REFUND, "amount": "5.00"}

    decide(
        as_actor(world.approver),
        interrupt.id,
        Opinion("edit", 1, interrupt.digest, args=edited),
    )

    call = Interrupt.objects.get(id=interrupt.id).tool_call
    assert (call.status, json.loads(call.args_text), call.edited) == ("approved", edited, True)


@pytest.mark.parametrize(
    ("opinion", "field"),
    [
        ({"action": "edit"}, "args"),
        ({"action": "edit", "args": {"order_id": "A-1001"}}, "args"),
        ({"action": "edit", "args": {**REFUND, "amount": "-1"}}, "args"),
        ({"action": "edit", "args": {**REFUND, "extra": 1}}, "args"),
        ({"action": "approve", "args": REFUND}, "args"),
        ({"action": "approve", "response": "yes"}, "response"),
        ({"action": "respond"}, "response"),
        ({"action": "respond", "response": "  "}, "response"),
        ({"action": "reject"}, "reason"),
        ({"action": "nonsense"}, "action"),
    ],
)
def test_a_payload_that_does_not_fit_changes_nothing(
    world: World, opinion: dict[str, Any], field: str
) -> None:
    interrupt = world.ask("issue_refund", REFUND, risk="high")

    with pytest.raises(InvalidPayload) as caught:
        decide(
            as_actor(world.approver),
            interrupt.id,
            Opinion(version=1, digest=interrupt.digest, **opinion),
        )

    assert caught.value.data["field"] == field
    assert Interrupt.objects.get(id=interrupt.id).status == "open"
    assert not Decision.objects.exists()


def test_it_refuses_a_stale_version(world: World) -> None:
    interrupt = world.ask()
    Interrupt.objects.filter(id=interrupt.id).update(version=2)

    with pytest.raises(StaleVersion):
        decide(as_actor(world.approver), interrupt.id, approve(interrupt))


def test_it_refuses_what_is_not_what_was_shown(world: World) -> None:
    interrupt = world.ask()

    with pytest.raises(StaleVersion):
        decide(as_actor(world.approver), interrupt.id, Opinion("approve", 1, "f" * 64))


def test_a_repeat_of_the_same_person_gets_the_same_answer(world: World) -> None:
    interrupt = world.ask()
    first = decide(as_actor(world.approver), interrupt.id, approve(interrupt))

    again = decide(as_actor(world.approver), interrupt.id, approve(interrupt))

    assert (again.status, again.decided_at) == (first.status, first.decided_at)
    assert Decision.objects.count() == 1
    assert len(audited("interrupt.decided")) == 1


def test_another_opinion_of_the_same_person_is_refused(world: World) -> None:
    interrupt = world.ask()
    decide(as_actor(world.approver), interrupt.id, approve(interrupt))

    with pytest.raises(AlreadyDecided):
        decide(as_actor(world.approver), interrupt.id, reject(interrupt))


def test_the_same_opinion_of_somebody_else_is_refused(world: World) -> None:
    interrupt = world.ask()
    decide(as_actor(world.approver), interrupt.id, approve(interrupt))

    with pytest.raises(AlreadyDecided):
        decide(as_actor(world.approver2), interrupt.id, approve(interrupt))


def test_the_run_waits_until_all_its_interrupts_are_settled(world: World) -> None:
    run = world.run()
    one, other = world.ask(run=run), world.ask(run=run)

    decide(as_actor(world.approver), one.id, approve(one))
    status_between = Run.objects.get(id=run.id).status
    decide(as_actor(world.approver2), other.id, reject(other))

    assert (status_between, Run.objects.get(id=run.id).status) == ("interrupted", "pending")


def test_a5_an_answer_counts_for_one_interrupt_once(world: World) -> None:
    run = world.run()
    first = world.ask("ask_human", {"question": "Which one?"}, run=run, kind="question")
    second = world.ask("ask_human", {"question": "And then?"}, run=run, kind="question")
    answer = Opinion("respond", 1, first.digest, response="first")

    decide(as_actor(world.approver), first.id, answer)

    assert Interrupt.objects.get(id=second.id).status == "open"
    with pytest.raises(StaleVersion):
        decide(as_actor(world.approver), second.id, answer)
    with pytest.raises(AlreadyDecided):
        decide(
            as_actor(world.approver),
            first.id,
            Opinion("respond", 1, first.digest, response="another"),
        )


def test_nothing_can_be_decided_after_its_time(world: World) -> None:
    interrupt = world.ask(expires_in=dt.timedelta(seconds=-1))

    with pytest.raises(Expired):
        decide(as_actor(world.approver), interrupt.id, approve(interrupt))


def test_d4_nothing_can_be_decided_once_the_run_has_ended(world: World) -> None:
    run = world.run()
    asked = [world.ask(run=run) for _ in range(3)]

    cancel_run(as_actor(world.operator), run)

    assert not waiting_for(world.approver).exists()
    for interrupt in asked:
        with pytest.raises(Withdrawn):
            decide(as_actor(world.approver), interrupt.id, approve(interrupt))
    assert not Decision.objects.exists()


def test_a4_a_stranger_finds_nothing_and_leaves_a_trace(world: World) -> None:
    interrupt = world.ask()

    with pytest.raises(NotFound):
        decide(as_actor(world.stranger), interrupt.id, approve(interrupt))

    assert Interrupt.objects.get(id=interrupt.id).status == "open"
    (entry,) = audited("decision.denied")
    assert (entry["actor"], entry["object"]) == ("stranger", str(interrupt.id))


@pytest.mark.parametrize("who", ["operator", "viewer"])
def test_a4_who_may_see_but_not_decide_is_told_so(world: World, who: str) -> None:
    interrupt = world.ask()

    with pytest.raises(NotAllowed):
        decide(as_actor(getattr(world, who)), interrupt.id, approve(interrupt))

    assert Interrupt.objects.get(id=interrupt.id).status == "open"
    assert [entry["actor"] for entry in audited("decision.denied")] == [who]


def test_a4_the_right_is_read_at_the_moment_of_the_decision(world: World) -> None:
    interrupt = world.ask()
    Membership.objects.filter(user=world.approver).update(role="viewer")

    with pytest.raises(NotAllowed):
        decide(as_actor(world.approver), interrupt.id, approve(interrupt))


def test_who_started_a_run_does_not_decide_on_its_high_risks(world: World) -> None:
    run = world.run(by=world.approver)
    high = world.ask("issue_refund", REFUND, run=run, risk="high")
    medium = world.ask(run=world.run(by=world.approver))

    with pytest.raises(NotAllowed):
        decide(as_actor(world.approver), high.id, approve(high))

    assert decide(as_actor(world.approver), medium.id, approve(medium)).status == "approved"


def test_an_account_that_was_switched_off_decides_nothing(world: World) -> None:
    interrupt = world.ask()
    world.approver.is_active = False
    world.approver.save()

    with pytest.raises(NotFound):
        decide(as_actor(world.approver), interrupt.id, approve(interrupt))


def test_a_token_of_another_project_finds_nothing(world: World) -> None:
    interrupt = world.ask()

    with pytest.raises(NotFound):
        decide(
            as_actor(world.approver, "api"),
            interrupt.id,
            approve(interrupt),
            token_project=new_id(),
        )


def test_what_is_not_there_leaves_no_trace(world: World) -> None:
    with pytest.raises(NotFound):
        decide(as_actor(world.approver), new_id(), Opinion("approve", 1, "0"))

    assert not audited("decision.denied")


def test_the_guard_lets_a_decision_stand(world: World) -> None:
    interrupt = world.ask()
    decide(as_actor(world.approver), interrupt.id, approve(interrupt))

    assert guard().revoked(interrupt.id) is None


def test_a4_the_guard_names_who_lost_the_right_after_deciding(world: World) -> None:
    interrupt = world.ask()
    decide(as_actor(world.approver), interrupt.id, approve(interrupt))

    Membership.objects.filter(user=world.approver).delete()

    assert "approver" in (guard().revoked(interrupt.id) or "")


def test_the_guard_holds_back_what_nobody_decided(world: World) -> None:
    assert guard().revoked(world.ask().id)
    assert guard().revoked(new_id())

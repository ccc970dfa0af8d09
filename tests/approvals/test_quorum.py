"""Several people on one request: who counts, on which version, and what ends it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import DatabaseError, transaction

from approvals.deciding.changing import propose, undo
from approvals.deciding.commands import Opinion, decide, override
from approvals.deciding.guard import guard
from approvals.models import ApprovalPolicy, ApproverGroup, Decision, Revision
from approvals.people.eligible import deciders
from approvals.queries import waiting_for
from runtime_core import clock
from runtime_core.errors import (
    AlreadyDecided,
    InvalidPayload,
    NotAllowed,
    NotFound,
    StaleVersion,
    UndoClosed,
)
from runtime_core.models import Event, Interrupt, Membership, Run, ToolPermission
from tests.approvals.world import World, as_actor, audited, make_user

REFUND = {"order_id": "A-1001", "amount": "20.00", "reason": "Broken on arrival."}
LESS = {**REFUND, "amount": "5.00"}


def vote(interrupt: Interrupt, user: Any, action: str = "approve", **more: Any) -> Interrupt:
    """What somebody decides who has just read it; the request as it is then."""
    now = fresh(interrupt)
    via = more.pop("via", "web")
    undoable = more.pop("undoable", False)
    opinion = Opinion(action, now.version, now.digest, **more)
    return decide(as_actor(user, via), interrupt.id, opinion, undoable=undoable)


def proposed(interrupt: Interrupt, user: Any, args: dict[str, Any]) -> Interrupt:
    now = fresh(interrupt)
    return propose(as_actor(user), interrupt.id, Opinion("edit", now.version, now.digest, args))


def fresh(interrupt: Interrupt) -> Interrupt:
    return Interrupt.objects.select_related("run", "tool_call").get(id=interrupt.id)


def run_status(interrupt: Interrupt) -> str:
    return Run.objects.get(id=interrupt.run_id).status


def test_the_outcome_waits_for_as_many_people_as_the_terms_require(world: World) -> None:
    interrupt = world.ask("issue_refund", REFUND, risk="critical", ruled=True)

    first = vote(interrupt, world.approver)
    assert (first.status, run_status(interrupt)) == ("open", "interrupted")
    assert vote(interrupt, world.approver).version == first.version  # a repeat is no second person
    assert Decision.objects.count() == 1
    with pytest.raises(AlreadyDecided):
        vote(interrupt, world.approver, reason="in other words")
    assert interrupt not in waiting_for(world.approver)
    assert interrupt in waiting_for(world.approver2)

    second = vote(interrupt, world.approver2)

    assert (second.status, second.decided_by_id) == ("approved", world.approver2.pk)
    assert run_status(interrupt) == "pending"
    assert [(e["votes"], e["required"]) for e in audited("interrupt.decided")] == [(1, 2), (2, 2)]
    said = Event.objects.filter(run=interrupt.run, type="progress").order_by("seq")
    assert [e.data["message"] for e in said] == [
        "approver approved issue_refund (1 of 2)",
        "approver2 approved issue_refund",
    ]
    assert guard().revoked(interrupt.id) is None


def test_one_rejection_ends_it_and_an_answer_too(world: World) -> None:
    world.policy(required=2)
    for action, more, settled in (
        ("reject", {"reason": "Too much."}, "rejected"),
        ("respond", {"response": "Done by hand."}, "answered"),
    ):
        interrupt = world.ask("issue_refund", REFUND, risk="high", ruled=True)
        vote(interrupt, world.approver)
        assert vote(interrupt, world.approver2, action, **more).status == settled
        assert run_status(interrupt) == "pending"


def test_an_edit_voids_what_others_approved_and_counts_for_its_editor(world: World) -> None:
    world.policy(required=2)
    third = make_user("approver3", world.project, "approver")
    interrupt = world.ask("issue_refund", REFUND, risk="high", ruled=True)
    seen = interrupt.digest
    vote(interrupt, world.approver)

    edited = vote(interrupt, world.approver2, "edit", args=LESS)

    assert (edited.status, edited.version, edited.changed_by_id) == ("open", 2, world.approver2.pk)
    with pytest.raises(StaleVersion):
        decide(as_actor(third), interrupt.id, Opinion("approve", 1, seen))
    assert vote(interrupt, world.approver).status == "edited"
    kept = Decision.objects.order_by("created_at").values_list("actor_name", "action", "version")
    assert list(kept) == [("approver", "approve", 1), ("approver2", "edit", 2),
                          ("approver", "approve", 2)]  # fmt: skip
    assert json.loads(fresh(interrupt).tool_call.args_text) == LESS


def test_a_proposal_decides_nothing_and_is_the_next_version(world: World) -> None:
    world.policy(required=2)
    interrupt = world.ask("issue_refund", REFUND, risk="high", ruled=True)
    vote(interrupt, world.approver)

    now = proposed(interrupt, world.approver2, LESS)

    assert (now.status, now.version, run_status(interrupt)) == ("open", 2, "interrupted")
    assert now.digest != interrupt.digest
    rows = Revision.objects.values_list("version", "cause", "actor_name", "args_redacted__amount")
    assert list(rows) == [(1, "asked", "", "20.00"), (2, "proposed", "approver2", "5.00")]
    (entry,) = audited("interrupt.proposed")
    assert (entry["version"], entry["actor"]) == (2, "approver2")
    assert "5.00" not in json.dumps(entry)
    assert interrupt in waiting_for(world.approver2)

    assert vote(interrupt, world.approver2).status == "open"
    assert vote(interrupt, world.approver).status == "edited"


def test_who_proposes_is_checked_as_who_decides(world: World) -> None:
    world.policy(required=2)
    interrupt = world.ask("issue_refund", REFUND, risk="high", ruled=True)

    for user, error in ((world.viewer, NotAllowed), (world.stranger, NotFound)):
        with pytest.raises(error):
            proposed(interrupt, user, LESS)
    with pytest.raises(InvalidPayload):
        proposed(interrupt, world.approver, {**REFUND, "amount": "-1"})
    assert fresh(interrupt).version == 1
    assert not Revision.objects.exists()
    assert [entry["actor"] for entry in audited("decision.denied")] == ["viewer", "stranger"]


def test_whoever_wrote_the_arguments_may_not_decide_on_them_where_the_terms_say_so(
    world: World,
) -> None:
    world.policy(editor_may=False)
    interrupt = world.ask("issue_refund", REFUND, risk="high", ruled=True)

    edited = vote(interrupt, world.approver, "edit", args=LESS)

    assert (edited.status, edited.version) == ("open", 2)
    assert interrupt not in waiting_for(world.approver)
    assert deciders(fresh(interrupt)) == ["approver2"]
    with pytest.raises(NotAllowed, match="You changed these arguments"):
        vote(interrupt, world.approver)
    proposed(interrupt, world.approver, {**LESS, "amount": "4.00"})
    assert vote(interrupt, world.approver2).status == "edited"


def test_an_edit_that_a_permission_refuses_changes_nothing(world: World) -> None:
    ToolPermission.objects.create(
        agent=world.agent,
        tool="issue_refund",
        verdict="deny",
        constraints={"amount": {"min": 100}},
    )
    interrupt = world.ask("issue_refund", REFUND, risk="high")

    with pytest.raises(InvalidPayload, match="not permitted") as caught:
        vote(interrupt, world.approver, "edit", args={**REFUND, "amount": "120.00"})

    assert caught.value.data["field"] == "args"
    assert (fresh(interrupt).version, fresh(interrupt).tool_call.edited) == (1, False)
    assert vote(interrupt, world.approver, "edit", args=LESS).status == "edited"

    # What was asked by a rule that does not reach the edit is refused by default at this risk.
    ToolPermission.objects.update(verdict="ask", constraints={"amount": {"max": 50}})
    interrupt = world.ask("issue_refund", REFUND, risk="high")
    with pytest.raises(InvalidPayload, match="No permission covers it"):
        vote(interrupt, world.approver, "edit", args={**REFUND, "amount": "60.00"})
    assert vote(interrupt, world.approver, "edit", args=LESS).status == "edited"


def test_an_edit_into_a_stricter_policy_is_asked_again_of_as_many_people(world: World) -> None:
    world.policy(name="Refunds", tool="issue_refund")
    big = world.policy(
        name="Big refunds", tool="issue_refund", conditions={"amount": {"min": 100}}, required=2
    )
    interrupt = world.ask("issue_refund", REFUND, risk="high")
    decided = {**REFUND, "amount": "120.00"}

    with pytest.raises(StaleVersion):  # since it was asked, a policy has come
        vote(interrupt, world.approver, "edit", args=decided)
    now = vote(interrupt, world.approver, "edit", args=decided)

    assert (now.status, now.version, now.required, now.policy) == ("open", 3, 2, big.id)
    assert Decision.objects.get().action == "propose"
    assert vote(interrupt, world.approver).status == "open"
    assert vote(interrupt, world.approver2).status == "edited"


def test_a_policy_that_changes_while_it_is_open_asks_anew(world: World) -> None:
    old = world.policy(required=2)
    interrupt = world.ask("issue_refund", REFUND, risk="high", ruled=True)
    first = fresh(interrupt)
    new = next_version(old, required=1, people=[world.approver2.pk])

    with pytest.raises(StaleVersion):
        decide(as_actor(world.approver2), interrupt.id, Opinion("approve", 1, first.digest))

    now = fresh(interrupt)
    assert (now.version, now.required, now.policy) == (2, 1, new.id)
    assert now.expires_at <= first.expires_at
    assert [e["policy_after"] for e in audited("interrupt.rebound")] == [str(new.id)]
    with pytest.raises(NotAllowed, match="policy names others"):
        vote(interrupt, world.approver)
    assert interrupt not in waiting_for(world.approver)
    assert vote(interrupt, world.approver2).status == "approved"


def next_version(old: ApprovalPolicy, **changes: Any) -> ApprovalPolicy:
    """An edit of a policy, as the admin makes it."""
    fields = {f.name: getattr(old, f.name) for f in old._meta.fields if f.name not in ("id",)}
    with transaction.atomic():
        ApprovalPolicy.objects.filter(id=old.id).update(superseded_at=old.created_at)
        changes = {"number": old.number + 1, **changes}
        return ApprovalPolicy.objects.create(**{**fields, **changes, "superseded_at": None})


def test_a_version_of_a_policy_cannot_be_changed_in_the_database(world: World) -> None:
    row = world.policy(required=3)

    with pytest.raises(DatabaseError, match="never changes"), transaction.atomic():
        ApprovalPolicy.objects.filter(id=row.id).update(required=1)


def test_a_group_and_named_people_decide_and_nobody_else(world: World) -> None:
    group = ApproverGroup.objects.create(project=world.project, name="finance")
    group.members.add(world.viewer)
    world.policy(groups=[str(group.id)], people=[world.operator.pk], requester_may=False)
    elsewhere = make_user("elsewhere")
    group.members.add(elsewhere)
    mine = world.ask(ruled=True)
    other = world.ask(run=world.run(by=world.approver), ruled=True)

    assert set(waiting_for(world.viewer)) == {mine, other}
    assert set(waiting_for(world.operator)) == {other}  # not on the run that is their own
    for outsider in (world.approver, elsewhere, world.stranger):
        assert not waiting_for(outsider).exists()
    assert deciders(fresh(mine)) == ["viewer"]
    with pytest.raises(NotFound):
        vote(mine, elsewhere)
    assert vote(mine, world.viewer).status == "approved"
    group.members.remove(world.viewer)
    assert "viewer" in (guard().revoked(mine.id) or "")


def test_every_one_of_them_must_still_have_the_right_when_it_runs(world: World) -> None:
    interrupt = world.ask("issue_refund", REFUND, risk="critical", ruled=True)
    vote(interrupt, world.approver)
    vote(interrupt, world.approver2)
    assert guard().revoked(interrupt.id) is None

    Membership.objects.filter(user=world.approver).delete()  # the first, not who decided last
    assert "approver, who decided" in (guard().revoked(interrupt.id) or "")
    Membership.objects.create(user=world.approver, project=world.project, role="approver")
    assert guard().revoked(interrupt.id) is None

    world.policy(required=3)
    assert "requires 3 people" in (guard().revoked(interrupt.id) or "")


def test_a_superuser_decides_past_the_policy_only_openly_and_with_a_reason(world: World) -> None:
    root = get_user_model().objects.create_superuser("root")
    interrupt = world.ask("issue_refund", REFUND, risk="critical", ruled=True)
    opinion = Opinion("approve", 1, interrupt.digest)

    for user in (root, world.viewer):
        with pytest.raises(NotAllowed):
            decide(as_actor(user), interrupt.id, opinion)
    with pytest.raises(NotAllowed, match="Only a superuser"):
        override(as_actor(world.approver), interrupt.id, replace(opinion, reason="Now!"))
    with pytest.raises(NotAllowed):
        override(as_actor(root, "machine"), interrupt.id, replace(opinion, reason="Now!"))
    with pytest.raises(NotFound):
        override(as_actor(world.stranger), interrupt.id, replace(opinion, reason="Now!"))
    with pytest.raises(InvalidPayload, match="say why"):
        override(as_actor(root), interrupt.id, opinion)

    why = replace(opinion, reason="The shop is on fire.")
    settled = override(as_actor(root), interrupt.id, why)

    assert (settled.status, Decision.objects.get().overridden) == ("approved", True)
    assert override(as_actor(root), interrupt.id, why).status == "approved"
    (entry,) = audited("interrupt.overridden")
    assert (entry["actor"], entry["reason"]) == ("root", "The shop is on fire.")
    assert not audited("interrupt.decided")
    assert guard().revoked(interrupt.id) is None
    get_user_model().objects.filter(pk=root.pk).update(is_superuser=False)
    assert "past the policy" in (guard().revoked(interrupt.id) or "")


def test_a_service_token_decides_under_the_same_checks_and_is_marked(world: World) -> None:
    low = world.ask(ruled=True)
    high = world.ask("issue_refund", REFUND, risk="high", ruled=True)

    with pytest.raises(NotAllowed, match="service token"):
        vote(high, world.approver, via="machine")
    with pytest.raises(NotAllowed):
        vote(low, world.viewer, via="machine")
    assert vote(low, world.approver, via="machine").status == "approved"

    assert Decision.objects.get().via == "machine"
    assert vote(high, world.approver, "reject", reason="Too much.").status == "rejected"
    assert audited("interrupt.decided")[0]["machine"] is True
    world.policy(machines_may=False)
    assert "may not decide under it" in (guard().revoked(low.id) or "")


def test_what_was_decided_is_taken_back_within_its_time_and_has_no_effect_before(
    world: World,
) -> None:
    interrupt = world.ask("issue_refund", REFUND, risk="high", ruled=True)
    settled = vote(interrupt, world.approver, undoable=True)
    run = Run.objects.get(id=interrupt.run_id)
    assert (settled.status, run.status) == ("approved", "pending")
    assert run.available_at >= settled.undo_until > settled.decided_at
    for other, error in ((world.approver2, NotAllowed), (world.stranger, NotFound)):
        with pytest.raises(error):
            undo(as_actor(other), interrupt.id, 1)
    with pytest.raises(StaleVersion):
        undo(as_actor(world.approver), interrupt.id, 2)

    again = undo(as_actor(world.approver), interrupt.id, 1)

    assert (again.status, again.version, run_status(interrupt)) == ("open", 2, "interrupted")
    call = fresh(interrupt).tool_call
    assert (call.status, call.ended_at) == ("awaiting_approval", None)
    assert (again.decided_at, again.decided_by, again.undo_until) == (None, None, None)
    actions = Decision.objects.order_by("created_at").values_list("action", flat=True)
    assert list(actions) == ["approve", "undo"]
    assert audited("interrupt.undone")[0]["reopened_as"] == 2
    with pytest.raises(StaleVersion):
        decide(as_actor(world.approver), interrupt.id, Opinion("approve", 1, interrupt.digest))
    assert vote(interrupt, world.approver).status == "approved"


def test_an_edit_is_taken_back_to_what_it_changed_and_a_rejection_too(world: World) -> None:
    for action, more in (("edit", {"args": LESS}), ("reject", {"reason": "No."})):
        interrupt = world.ask("issue_refund", REFUND, risk="high")
        vote(interrupt, world.approver, action, undoable=True, **more)
        version = fresh(interrupt).version

        undo(as_actor(world.approver), interrupt.id, version)

        now = fresh(interrupt)
        call = now.tool_call
        assert json.loads(call.args_text) == REFUND
        assert (call.edited, call.status, call.result_text) == (False, "awaiting_approval", None)
        assert (now.digest, now.changed_by_id) == (interrupt.digest, None)
        assert vote(interrupt, world.approver2).status == "approved"


def test_undo_is_closed_once_its_time_is_over_or_without_one(world: World) -> None:
    late = world.ask()
    vote(late, world.approver, undoable=True)
    Interrupt.objects.filter(id=late.id).update(undo_until=late.created_at)
    never = world.ask()
    vote(never, world.approver)

    for interrupt in (late, never):
        with pytest.raises(UndoClosed):
            undo(as_actor(world.approver), interrupt.id, 1)
        assert fresh(interrupt).status == "approved"
    assert Run.objects.get(id=never.run_id).available_at <= clock.now()


def test_a_vote_that_has_settled_nothing_can_be_taken_back_at_any_time(world: World) -> None:
    interrupt = world.ask("issue_refund", REFUND, risk="critical", ruled=True)
    vote(interrupt, world.approver)

    undo(as_actor(world.approver), interrupt.id, 1)

    assert fresh(interrupt).version == 2
    vote(interrupt, world.approver2)
    assert (
        vote(interrupt, world.approver, "reject", reason="On second thoughts.").status == "rejected"
    )


def test_who_takes_a_vote_on_an_edit_back_leaves_the_edit_of_somebody_else(world: World) -> None:
    interrupt = world.ask("issue_refund", REFUND, risk="medium")
    Interrupt.objects.filter(id=interrupt.id).update(required=3)
    vote(interrupt, world.approver, "edit", args=LESS)
    vote(interrupt, world.approver2)

    undo(as_actor(world.approver2), interrupt.id, 2)

    now = fresh(interrupt)
    assert (now.version, json.loads(now.tool_call.args_text)) == (3, LESS)
    assert (now.changed_by_id, now.tool_call.edited) == (world.approver.pk, True)
    vote(interrupt, world.approver2)
    with pytest.raises(NotAllowed):
        undo(as_actor(world.approver), interrupt.id, 3)


def test_who_takes_their_own_edit_back_takes_it_back_after_others_agreed_too(world: World) -> None:
    interrupt = world.ask("issue_refund", REFUND, risk="medium")
    Interrupt.objects.filter(id=interrupt.id).update(required=3)
    vote(interrupt, world.approver, "edit", args=LESS)
    vote(interrupt, world.approver2)

    undo(as_actor(world.approver), interrupt.id, 2)

    now = fresh(interrupt)
    assert (now.version, json.loads(now.tool_call.args_text)) == (3, REFUND)
    assert now.changed_by_id is None

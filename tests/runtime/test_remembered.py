"""Remembered approvals, in real runs: what was allowed once, for a run, a thread or an agent; no further."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest
from django.test import Client

from approvals import grants
from approvals.grants import Wish
from approvals.models import ApprovalPolicy, Grant, GrantUse, Notice
from runtime_core import clock, commands, ports
from runtime_core.errors import InvalidPayload, NotAllowed
from runtime_core.ids import new_id
from runtime_core.models import Interrupt, Membership, Run, ToolPermission
from tests.approvals.world import audited
from tests.runtime.tools import effects
from tests.runtime.world import (
    World,
    actor,
    call,
    calls,
    decide_on,
    drive,
    fresh,
    open_interrupts,
    statuses,
)
from traces.models import SpanRow

pytestmark = pytest.mark.django_db(transaction=True)
ASK = {"note": "ask"}


def notes(*texts: str) -> list[dict[str, Any]]:
    return [*({"calls": [call("note", text=text)]} for text in texts), {"text": "Done."}]


def asked(run: Run) -> Interrupt:
    [interrupt] = open_interrupts(run)
    return interrupt


def allow(world: World, run: Run, scope: str = "", **more: Any) -> Run:
    """Bob approves what the run asks, and perhaps has it remembered; then it goes on."""
    interrupt = asked(run)
    decide_on(interrupt, world.bob)
    if scope:
        grants.remember(actor(world.bob), interrupt.id, Wish(scope, 60, **more))
    return drive(fresh(run))


def asks(run: Run) -> bool:
    return drive(run).status == "interrupted"


def test_j4_once_is_once_and_for_a_run_is_for_that_run(world: World) -> None:
    agent = world.agent(notes("a", "a", "a", "b"), name="noter", permissions=ASK)
    run = drive(world.run_of(agent))
    assert Notice.objects.get(kind="opened").interrupt == asked(run)

    run = allow(world, run)
    assert not Grant.objects.exists()
    assert asked(run).tool_call.step > 0, "the same call in the same run is asked about again"

    run = allow(world, run, "run")
    third, fourth = calls(run)[2:]
    assert (third.status, fourth.status) == ("succeeded", "awaiting_approval"), "others are asked"
    grant = Grant.objects.get()
    assert (third.grant_id, grant.uses) == (grant.id, 1)
    said = f"{world.bob.username} allowed it for this run with the same arguments until"
    assert third.verdict_reason.startswith(said)
    (used,) = audited("grant.used")
    assert (used["actor"], used["tool_call"]) == (world.bob.username, str(third.id))
    run = allow(world, run)
    assert run.status == "completed"
    ports.spans().flush()
    assert any(
        one.attrs["why"].startswith(said)
        for one in SpanRow.objects.filter(run_id=run.id, kind="tool")
    )

    assert asks(world.run_of(agent)), "another run of the same person"
    dana = world.victor
    Membership.objects.create(project=world.project, user=dana, role="operator")
    theirs = commands.start_run(actor(dana), project=world.project, agent=agent, input="go")
    assert asks(theirs), "a run of somebody else"


def test_j4_for_an_agent_holds_in_its_runs_alone_and_ends_with_all_it_stands_on(
    world: World,
) -> None:
    agent = world.agent(notes("a"), name="noter", permissions=ASK)
    first = allow(world, drive(world.run_of(agent)), "agent")
    assert first.status == "completed"
    grant = Grant.objects.get()
    assert not asks(world.run_of(agent))

    other = world.agent(notes("a"), name="other", permissions=ASK)
    assert asks(world.run_of(other)), "another agent"
    denied = world.agent(notes("a"), name="denied", permissions={"note": "deny"})
    assert [one.status for one in calls(drive(world.run_of(denied)))] == ["rejected"]
    child = world.run_of(agent)
    Run.objects.filter(id=child.id).update(parent=first, parent_call=new_id())
    assert asks(child), "a run that another run's call started"

    permission = ToolPermission.objects.get(agent__name="noter", tool="note")
    ToolPermission.objects.filter(id=permission.id).update(verdict="deny")
    assert [one.status for one in calls(drive(world.run_of(agent)))] == ["rejected"], "deny wins"
    ToolPermission.objects.filter(id=permission.id).update(verdict="ask")

    an_hour_ago = clock.now() - dt.timedelta(hours=1)
    for change in (
        {"expires_at": an_hour_ago},
        {"revoked_at": an_hour_ago},
        {"schema_digest": "0" * 64},
        {"uses": grant.max_uses},
        {"valid_from": clock.now() + dt.timedelta(hours=1)},
    ):
        before = {name: getattr(grant, name) for name in change}
        Grant.objects.update(**change)
        assert asks(world.run_of(agent)), change
        Grant.objects.update(**before)
    Grant.objects.update(uses=0)
    assert not asks(world.run_of(agent))

    membership = Membership.objects.get(user=world.bob)
    Membership.objects.update_or_create(id=membership.id, defaults={"role": "viewer"})
    assert asks(world.run_of(agent)), "its grantor may not decide any more"
    Membership.objects.filter(id=membership.id).update(role="approver")
    ApprovalPolicy.objects.create(name="No memory", tool="note", remember_may=False)
    assert asks(world.run_of(agent)), "the policy lets nothing be remembered any more"


def test_j4_a_running_run_notices_before_its_next_call_that_a_grant_is_over(world: World) -> None:
    two = [{"calls": [call("note", text="a"), call("note", text="a")]}, {"text": "Done."}]
    agent = world.agent(two, name="noter", permissions=ASK)
    run = drive(world.run_of(agent))
    for interrupt in open_interrupts(run):
        decide_on(interrupt, world.bob)
    first = Interrupt.objects.filter(run=run).order_by("id").first()
    assert first is not None
    grants.remember(actor(world.bob), first.id, Wish("agent", 60, uses=1))
    assert drive(fresh(run)).status == "completed"

    second = drive(world.run_of(agent))

    # Both calls were allowed when they were proposed; the one use was spent by the first.
    assert [one.status for one in calls(second)] == ["succeeded", "awaiting_approval"]
    again = asked(second)
    assert (again.kind, "used up" in again.reason) == ("drift", True)
    decide_on(again, world.bob)
    assert drive(fresh(second)).status == "completed"
    assert [one.status for one in calls(second)] == ["succeeded", "succeeded"]
    assert GrantUse.objects.count() == Grant.objects.get().uses == 1

    Grant.objects.update(max_uses=9)
    world.bob.is_staff = world.bob.is_superuser = True
    world.bob.save()
    admin = Client()
    admin.force_login(world.bob)
    listed = admin.get("/admin/approvals/grant/").content.decode()
    assert "note" in listed
    chosen = {"action": "revoke", "_selected_action": [str(Grant.objects.get().id)]}
    admin.post("/admin/approvals/grant/", chosen)
    assert [one["tool"] for one in audited("grant.revoked")] == ["note"]
    assert asks(world.run_of(agent))


def test_conditions_hold_for_arguments_like_these_and_the_policy_says_whether_at_all(
    world: World,
) -> None:
    agent = world.agent(notes("a-1", "a-2", "b"), name="noter", permissions=ASK)
    run = drive(world.run_of(agent))
    like = {"text": {"glob": "a-*"}}

    run = allow(world, run, "thread", conditions=like)

    assert [one.status for one in calls(run)] == ["succeeded", "succeeded", "awaiting_approval"]
    interrupt = asked(run)
    for wish in (
        Wish("everything", 60),
        Wish("run", 0),
        Wish("run", 60, uses=0),
        Wish("run", 60, conditions={}),
        Wish("run", 60, conditions={"text": {"like": "a"}}),
    ):
        with pytest.raises(InvalidPayload):
            grants.check(actor(world.bob), interrupt, wish)
    ApprovalPolicy.objects.create(name="Two", tool="note", required=2, remember_may=True)
    with pytest.raises(NotAllowed):
        grants.check(actor(world.bob), interrupt, Wish("run", 60))


def test_the_page_and_the_api_remember_with_the_decision_or_do_neither(world: World) -> None:
    agent = world.agent(notes("a", "a", "a"), name="noter", permissions=ASK)
    run = drive(world.run_of(agent))
    client = Client()
    client.force_login(world.bob)
    interrupt = asked(run)
    assert "Remember this approval" in client.get(f"/inbox/{interrupt.id}/").content.decode()
    form = {"action": "approve", "version": "1", "digest": interrupt.digest}
    wrong = {**form, "remember_scope": "run", "remember_minutes": "60", "remember_conditions": "{"}

    assert client.post(f"/inbox/{interrupt.id}/", wrong).status_code == 422

    assert fresh(run).status == "interrupted"
    right = {**wrong, "remember_scope": "thread", "remember_conditions": ""}
    assert client.post(f"/inbox/{interrupt.id}/", right).status_code == 302
    grant = Grant.objects.get()
    assert (grant.scope, grant.interrupt_id) == ("thread", interrupt.id)
    listed = client.get("/inbox/remembered/").content.decode()
    assert "this thread of noter" in listed
    client.post("/inbox/remembered/", {"grant": str(grant.id)})
    grant.refresh_from_db()
    assert grant.revoked_at is not None

    Interrupt.objects.update(undo_until=None)
    Run.objects.update(available_at=clock.now())
    run = drive(fresh(run))
    body = {
        "action": "approve", "version": 1, "digest": asked(run).digest,
        "remember": {"scope": "run", "minutes": 5, "conditions": {"text": {"equals": "a"}}},
    }  # fmt: skip
    address = f"/api/v1/interrupts/{asked(run).id}/decisions"
    assert client.post(address, body, content_type="application/json").status_code == 200
    assert client.post(address, body, content_type="application/json").status_code == 200
    assert Grant.objects.count() == 2
    assert drive(fresh(run)).status == "completed"
    assert statuses(run)[-1][1] == "completed"
    client.force_login(world.carol)
    assert "noter" not in client.get("/inbox/remembered/").content.decode()
    assert client.post("/inbox/remembered/", {"grant": str(grant.id)}).status_code == 404
    assert json.loads(client.get("/api/v1/grants").content) == {"items": []}
    assert effects()

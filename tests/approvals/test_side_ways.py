"""Proposing, taking back, overriding and explaining, over the API and on the pages."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.http import HttpResponse
from django.test import Client

from approvals.models import Decision
from runtime_core import clock
from runtime_core.models import ApiToken, Interrupt, Run
from tests.api.room import Api
from tests.approvals.world import World, audited

REFUND = {"order_id": "A-1001", "amount": "20.00", "reason": "Broken on arrival."}
LESS = {**REFUND, "amount": "5.00"}


def client_of(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


def post(client: Client, interrupt: Interrupt, where: str = "", **form: str) -> HttpResponse:
    """Send a form of the page as it stands now."""
    now = Interrupt.objects.get(id=interrupt.id)
    bound = {"version": str(now.version), "digest": now.digest}
    return client.post(f"/inbox/{interrupt.id}/{where}", {**bound, **form})


def page_of(client: Client, interrupt: Interrupt, where: str = "") -> str:
    return client.get(f"/inbox/{interrupt.id}/{where}").content.decode()


def status_of(interrupt: Interrupt) -> str:
    return Interrupt.objects.get(id=interrupt.id).status


@pytest.fixture
def critical(world: World) -> Interrupt:
    return world.ask("issue_refund", REFUND, risk="critical", ruled=True)


def test_the_api_proposes_counts_undoes_and_overrides(world: World, critical: Interrupt) -> None:
    one, two = Api(world.approver), Api(world.approver2)
    path = f"/interrupts/{critical.id}"
    _, seen = one.get(path)
    assert (seen["required"], seen["decided"], seen["votes"]) == (2, 0, [])

    status, now = one.post(
        f"{path}/proposals", {"version": 1, "digest": seen["digest"], "args": LESS}
    )
    assert (status, now["version"], now["args"], now["status"]) == (200, 2, LESS, "open")
    decision = {"action": "approve", "version": 2, "digest": now["digest"]}
    status, now = one.post(f"{path}/decisions", decision)
    assert (status, now["status"], now["decided"], now["decided_by"]) == (200, "open", 1, None)
    assert [(vote["by"], vote["action"], vote["via"]) for vote in now["votes"]] == [
        ("approver", "approve", "api")
    ]
    assert one.post(f"{path}/decisions", decision)[1] == now
    assert two.post(f"{path}/undo", {"version": 2})[0] == 403
    status, now = one.post(f"{path}/undo", {"version": 2})
    assert (status, now["version"], now["decided"], now["args"]) == (200, 3, 0, LESS)
    decision = {"action": "approve", "version": 3, "digest": now["digest"]}
    assert one.post(f"{path}/decisions", decision)[1]["decided"] == 1
    status, now = two.post(f"{path}/decisions", decision)
    assert (status, now["status"], now["decided_by"]) == (200, "edited", "approver2")
    # Through the API nothing can be taken back, and it is due at once.
    assert two.post(f"{path}/undo", {"version": 3})[1]["code"] == "undo_closed"
    assert Run.objects.get(id=critical.run_id).available_at <= clock.now()


def test_the_side_ways_of_the_api_are_closed_to_whom_they_are_not_for(
    world: World, critical: Interrupt
) -> None:
    path, bound = f"/interrupts/{critical.id}", {"version": 1, "digest": critical.digest}
    sent = {
        "proposals": {**bound, "args": LESS},
        "undo": {"version": 1},
        "override": {**bound, "action": "approve", "reason": "Because."},
    }
    for where, body in sent.items():
        assert Api(world.stranger).post(f"{path}/{where}", body)[0] == 404
        assert Api(world.viewer).post(f"{path}/{where}", body)[1]["code"] == "not_allowed"
        for broken in ({}, {**body, "extra": 1}, {**body, "version": "1"}):
            assert Api(world.approver).post(f"{path}/{where}", broken)[0] == 422
    no_reason = {**bound, "action": "approve"}
    root = get_user_model().objects.create_superuser("root")
    assert Api(root).post(f"{path}/override", no_reason)[0] == 422
    assert Api(root).post(f"{path}/override", {**no_reason, "reason": " "})[0] == 422
    assert Api(root).post(f"{path}/decisions", no_reason)[1]["code"] == "not_allowed"
    assert status_of(critical) == "open"
    assert not Decision.objects.exists()

    _, now = Api(root).post(f"{path}/override", {**no_reason, "reason": "The shop burns."})
    assert (now["status"], now["decided"]) == ("approved", 1)


def test_a_service_token_is_marked_and_kept_from_what_people_must_decide(
    world: World, critical: Interrupt
) -> None:
    low = world.ask(ruled=True)
    shown = {**REFUND, "reason": "(a redacted copy)"}
    type(critical.tool_call).objects.filter(id=critical.tool_call_id).update(args_redacted=shown)
    _, text = ApiToken.issue(world.approver, name="bot", is_machine=True)
    client = Client(headers={"Authorization": f"Bearer {text}"})

    def decide(interrupt: Interrupt) -> HttpResponse:
        body = {"action": "approve", "version": 1, "digest": interrupt.digest}
        where = f"/api/v1/interrupts/{interrupt.id}/decisions"
        return client.post(where, body, content_type="application/json")

    seen = client.get(f"/api/v1/interrupts/{critical.id}").json()["args"]
    assert seen["reason"] == "(a redacted copy)"
    assert Api(world.approver).get(f"/interrupts/{critical.id}")[1]["args"] == REFUND
    assert decide(critical).status_code == 403
    assert decide(low).json()["votes"][0]["via"] == "machine"
    assert "via a service token" in page_of(client_of(world.viewer), low)
    assert audited("interrupt.decided")[0]["machine"] is True


def test_an_undo_on_the_page_works_without_javascript_until_its_time_is_over(world: World) -> None:
    interrupt = world.ask(ruled=True)
    client = client_of(world.approver)

    assert post(client, interrupt, action="approve").status_code == 302
    assert "Undo" in page_of(client, interrupt)
    assert "Undo" not in page_of(client_of(world.approver2), interrupt)
    assert Run.objects.get(id=interrupt.run_id).available_at > clock.now()

    assert post(client, interrupt, "undo/").status_code == 302
    assert status_of(interrupt) == "open"
    assert "Decision taken back" in page_of(client, interrupt)

    post(client, interrupt, action="approve")
    Interrupt.objects.filter(id=interrupt.id).update(
        undo_until=clock.now() - dt.timedelta(seconds=1)
    )
    assert "Undo" not in page_of(client, interrupt)
    late = post(client, interrupt, "undo/")
    assert late.status_code == 409
    assert "can no longer be taken back" in late.content.decode()
    assert status_of(interrupt) == "approved"
    assert post(client_of(world.stranger), interrupt, "undo/").status_code == 404


def test_the_page_of_a_quorum_counts_shows_votes_and_takes_mine_back(
    world: World, critical: Interrupt
) -> None:
    one, two = client_of(world.approver), client_of(world.approver2)
    assert "It runs when 2 people approve this version" in page_of(one, critical)

    post(one, critical, action="approve", confirm="issue_refund")

    assert "You have decided; 1 more person has to" in page_of(one, critical)
    assert 'name="action" value="approve"' not in page_of(one, critical)
    assert "<strong>1 of 2</strong>" in page_of(two, critical)
    post(one, critical, "undo/")
    assert "<strong>0 of 2</strong>" in page_of(two, critical)


def test_a_proposal_on_the_page_shows_what_people_changed_to_each_as_they_may_see_it(
    world: World, critical: Interrupt
) -> None:
    one = client_of(world.approver)
    fields = {f"arg.{key}": value for key, value in LESS.items()}

    proposal = {"action": "edit", "as": "proposal"}  # which needs no name typed
    assert post(one, critical, **proposal, **fields).status_code == 302

    now = Interrupt.objects.get(id=critical.id)
    assert (now.status, now.version) == ("open", 2)
    page = page_of(client_of(world.approver2), critical)
    assert "Changed by people" in page
    assert "<del>20.00</del>" in page
    assert "<ins>5.00</ins>" in page
    assert "Changed, to be decided on by approver" in page
    assert post(one, critical, **proposal, **fields).status_code == 422  # nothing new


def test_a_superusers_override_is_a_form_of_its_own_and_says_so_afterwards(
    world: World, critical: Interrupt
) -> None:
    root = client_of(get_user_model().objects.create_superuser("root"))
    assert "Decide past the policy" in page_of(root, critical)
    assert "Decide past the policy" not in page_of(client_of(world.approver), critical)

    refused = post(root, critical, "override/", action="approve")
    assert refused.status_code == 422
    assert "Say why you decide past the policy" in refused.content.decode()
    assert post(root, critical, action="approve", confirm="issue_refund").status_code == 403
    viewer = post(client_of(world.viewer), critical, "override/", action="approve", reason="Me!")
    assert viewer.status_code == 403

    assert post(root, critical, "override/", action="approve", reason="Fire.").status_code == 302
    assert "past the approval policy" in page_of(client_of(world.viewer), critical)
    assert [entry["reason"] for entry in audited("interrupt.overridden")] == ["Fire."]


def test_a_page_says_which_policy_applies_and_why_the_others_do_not(world: World) -> None:
    world.policy(name="All refunds", tool="issue_*")
    world.policy(name="<b>Big</b>", tool="issue_refund", conditions={"amount": {"min": 100}})
    applies = world.policy(
        name="Our refunds", tool="issue_refund", required=2, people=[world.approver.pk],
        groups=[], roles=["admin"],
        escalation=[{"after_minutes": 30, "action": "notify", "roles": ["admin"]}],
    )  # fmt: skip
    interrupt = world.ask("issue_refund", REFUND, risk="high", ruled=True)

    page = page_of(client_of(world.viewer), interrupt, "policy/")

    assert interrupt.policy == applies.id
    for said in (
        "“Our refunds”, version 1",
        "2 different people on the same version",
        "role admin, approver",
        "notify: admin",
        "It matches, but “Our refunds” is more specific.",
        "does not hold: amount is not within min 100",
        "&lt;b&gt;Big&lt;/b&gt;",
    ):
        assert said in page, said
    assert client_of(world.stranger).get(f"/inbox/{interrupt.id}/policy/").status_code == 404
    assert Client().get(f"/inbox/{interrupt.id}/policy/").status_code == 302
    told = client_of(world.viewer).get(f"/api/v1/interrupts/{interrupt.id}/policy").json()
    assert told["policy"] == {"id": str(applies.id), "name": "Our refunds", "version": 1}
    assert (told["terms"]["required"], told["terms"]["people"]) == (2, [world.approver.username])
    assert next((one["name"], one["applies"]) for one in told["considered"]) == (
        "Our refunds",
        True,
    )
    assert {one["name"] for one in told["considered"] if one["why_not"]} == {
        "All refunds",
        "<b>Big</b>",
    }
    assert not told["has_changed"]
    stranger = client_of(world.stranger).get(f"/api/v1/interrupts/{interrupt.id}/policy")
    assert stranger.status_code == 404
    plain = world.ask(ruled=True)
    assert "The defaults for medium risk" in page_of(client_of(world.viewer), plain, "policy/")

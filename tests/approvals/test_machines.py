"""What a service token may do in a person's name: decide where its policy lets it, and arrange nothing else."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.test import Client

from approvals.deciding.changing import undo
from approvals.deciding.commands import decide
from approvals.deciding.opinion import Opinion
from approvals.models import Assignment, Decision, Delegation, Grant, SavedView, Snooze
from runtime_core import clock
from runtime_core.models import ApiToken, Interrupt, Membership
from tests.approvals.world import World, as_actor, make_user


class Machine:
    """A program with a service token of somebody."""

    def __init__(self, user: Any) -> None:
        _, text = ApiToken.issue(user, name="bot", is_machine=True)
        self.client = Client(headers={"Authorization": f"Bearer {text}"})

    def post(self, path: str, body: dict[str, Any] | None = None) -> tuple[int, Any]:
        answer = self.client.post(f"/api/v1{path}", body or {}, content_type="application/json")
        return answer.status_code, answer.json()


@pytest.fixture
def low(world: World) -> Interrupt:
    return world.ask(risk="low", ruled=True)


@pytest.fixture(params=["approver", "admin"])
def machine(request: pytest.FixtureRequest, world: World) -> Machine:
    """Of an approver, and of an admin who may decide as well."""
    if request.param == "approver":
        return Machine(world.approver)
    return Machine(make_user("boss", world.project, "admin", "approver"))


def test_a_machine_gives_work_to_nobody_and_hides_it_from_nobody(
    world: World, low: Interrupt, machine: Machine
) -> None:
    at, soon = f"/interrupts/{low.id}", (clock.now() + dt.timedelta(hours=1)).isoformat()
    stand_in = {"project": "demo", "delegate": "approver2", "ends_at": soon}
    tried = {
        f"{at}/assignments": {"people": ["approver2"]},
        f"{at}/snooze": {"minutes": 5},
        "/delegations": stand_in,
        "/inbox/views": {"name": "Mine", "query": "view=mine"},
    }
    for path, body in tried.items():
        status, answer = machine.post(path, body)
        assert (status, answer["code"]) == (403, "not_allowed"), path
        assert "as the person themselves" in answer["detail"]
    for model in (Assignment, Snooze, Delegation, SavedView):
        assert not model.objects.exists()  # type: ignore[attr-defined]


def test_a_machine_ends_nothing_that_people_arranged(
    world: World, low: Interrupt, machine: Machine
) -> None:
    later = clock.now() + dt.timedelta(hours=1)
    stands_in = Delegation.objects.create(
        project=world.project, delegator=world.approver, delegate=world.approver2,
        starts_at=clock.now(), ends_at=later, created_by=world.approver,
    )  # fmt: skip
    grant = Grant.objects.create(
        project=world.project, interrupt=low, grantor=world.approver, scope="agent",
        agent=world.agent, tool="write_file", args_digest="0" * 64, max_uses=5, expires_at=later, version=1,
    )  # fmt: skip

    for path in (f"/delegations/{stands_in.id}/revoke", f"/grants/{grant.id}/revoke"):
        status, answer = machine.post(path)
        assert (status, answer["code"]) == (403, "not_allowed"), path

    grant.refresh_from_db()
    stands_in.refresh_from_db()
    assert (grant.revoked_at, stands_in.revoked_at) == (None, None)


def test_a_machine_takes_back_what_it_decided_and_not_what_its_person_did(world: World) -> None:
    by_person, by_machine = (
        world.ask("issue_refund", {"order_id": "A-1", "amount": "1.00", "reason": "x"}, risk="low")
        for _ in range(2)
    )
    Interrupt.objects.update(required=2)
    opinion = Opinion("approve", 1, by_person.digest)
    decide(as_actor(world.approver), by_person.id, opinion)
    bot = Machine(world.approver)
    body = {"action": "approve", "version": 1, "digest": by_machine.digest}
    assert bot.post(f"/interrupts/{by_machine.id}/decisions", body)[0] == 200

    assert bot.post(f"/interrupts/{by_person.id}/undo", {"version": 1})[1]["code"] == "not_allowed"
    assert bot.post(f"/interrupts/{by_machine.id}/undo", {"version": 1})[0] == 200
    undo(as_actor(world.approver), by_person.id, 1)

    assert Decision.objects.filter(action="undo").count() == 2


def test_a_machine_loses_its_say_with_its_person(world: World, low: Interrupt) -> None:
    bot, body = Machine(world.approver), {"action": "approve", "version": 1, "digest": low.digest}
    Membership.objects.filter(user=world.approver).delete()
    assert bot.post(f"/interrupts/{low.id}/decisions", body)[0] == 404
    world.approver.is_active = False
    world.approver.save()
    assert bot.post(f"/interrupts/{low.id}/decisions", body)[0] == 401
    assert Interrupt.objects.get(id=low.id).status == "open"


def test_a_machine_never_decides_past_the_policy(world: World, low: Interrupt) -> None:
    root = make_user("root", world.project, "admin")
    root.is_superuser = True
    root.save()
    body = {"action": "approve", "version": 1, "digest": low.digest, "reason": "Because."}
    assert Machine(root).post(f"/interrupts/{low.id}/override", body)[1]["code"] == "not_allowed"

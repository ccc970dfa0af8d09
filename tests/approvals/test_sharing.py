"""Sharing the work on requests: claims, assignments, snooze, standing in, saved views."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.test import Client

from approvals.deciding.commands import Opinion, decide
from approvals.deciding.guard import guard
from approvals.models import (
    ApproverGroup,
    Assignment,
    Decision,
    Delegation,
    InterruptClaim,
    Notice,
    SavedView,
    Snooze,
)
from approvals.people import delegation
from approvals.people.rulings import ruling_on
from approvals.queries import for_me, waiting_for
from approvals.teamwork import claims, saved_views
from runtime_core import clock
from runtime_core.errors import (
    AlreadyClaimed,
    AlreadyDecided,
    InvalidInput,
    NotAllowed,
    NotFound,
)
from runtime_core.models import Event, Interrupt, Membership
from runtime_core.values import Actor
from tests.approvals.world import World, audited, make_user
from tests.runtime.world import together

HOUR = dt.timedelta(hours=1)


def actor(user: Any) -> Actor:
    return Actor(user.pk, user.get_username())


def vote(user: Any, interrupt: Interrupt, action: str = "approve", **more: Any) -> Interrupt:
    opinion = Opinion(action, interrupt.version, interrupt.digest, **more)
    return decide(actor(user), interrupt.id, opinion)


def stand_in(world: World, by: Any, to: Any, **more: Any) -> Delegation:
    wish = delegation.Wish(ends_at=clock.now() + HOUR, **more)
    return delegation.delegate(actor(by), by, world.project, by, to, wish)


def said(interrupt: Interrupt) -> list[str]:
    found = Event.objects.filter(run=interrupt.run_id, type="progress").order_by("seq")
    return [one.data["message"] for one in found]


def page(user: Any, address: str) -> str:
    client = Client()
    client.force_login(user)
    return client.get(address).content.decode()


def test_one_person_looks_after_a_request_and_keeps_nobody_from_deciding(world: World) -> None:
    interrupt = world.ask()

    claims.claim(actor(world.approver), interrupt.id)
    claims.claim(actor(world.approver), interrupt.id)
    with pytest.raises(AlreadyClaimed) as caught:
        claims.claim(actor(world.approver2), interrupt.id)
    with pytest.raises(NotAllowed):
        claims.claim(actor(world.viewer), interrupt.id)
    with pytest.raises(NotFound):
        claims.claim(actor(world.stranger), interrupt.id)

    assert caught.value.data["holder"] == "approver"
    assert said(interrupt) == ["approver looks after the request (write_file)"]
    assert [one["actor"] for one in audited("interrupt.claimed")] == ["approver"]
    shown = page(world.approver2, f"/inbox/{interrupt.id}/")
    assert "<strong>approver</strong> looks after it" in shown
    assert "looks after the request" in shown, "in its history too"
    with pytest.raises(NotAllowed):
        claims.release(actor(world.approver2), interrupt.id)
    InterruptClaim.objects.update(until=clock.now() - HOUR)
    claims.claim(actor(world.approver2), interrupt.id)
    assert InterruptClaim.objects.get().holder == world.approver2
    claims.release(actor(world.approver2), interrupt.id)
    assert not InterruptClaim.objects.exists()
    claims.claim(actor(world.approver2), interrupt.id)

    assert vote(world.approver, interrupt).status == "approved"
    with pytest.raises(AlreadyDecided):
        claims.claim(actor(world.approver), interrupt.id)


@pytest.mark.race
@pytest.mark.django_db(transaction=True)
def test_of_many_who_claim_at_once_one_holds_it(transactional_db: None) -> None:
    world = World()
    people = [make_user(f"person{n}", world.project, "approver") for n in range(8)]
    interrupt = world.ask()
    # Over, so that each could take it by a condition alone.
    InterruptClaim.objects.create(
        interrupt=interrupt, holder=world.approver, until=clock.now() - HOUR
    )

    outcomes = together(*(lambda one=one: claims.claim(actor(one), interrupt.id) for one in people))

    won = [one for one in outcomes if isinstance(one, InterruptClaim)]
    assert len(won) == 1
    assert all(isinstance(one, AlreadyClaimed) for one in outcomes if one not in won)
    assert InterruptClaim.objects.get().holder == won[0].holder
    assert len(audited("interrupt.claimed")) == 1


def test_what_is_given_to_somebody_leaves_the_others_lists_and_nobodys_rights(
    world: World,
) -> None:
    interrupt = world.ask()
    team = ApproverGroup.objects.create(project=world.project, name="Night shift")
    team.members.add(world.approver2)

    claims.assign(actor(world.approver), interrupt.id, [], ["Night shift"])

    assert interrupt in for_me(world.approver2)
    assert interrupt not in for_me(world.approver)
    assert interrupt in waiting_for(world.approver)
    assert Notice.objects.get(kind="assigned").audience == [world.approver2.pk]
    assert said(interrupt) == ["approver gave the request to Night shift (write_file)"]
    (entry,) = audited("interrupt.assigned")
    assert entry["to"] == ["Night shift"]
    shown = page(world.viewer, f"/inbox/{interrupt.id}/")
    assert "Given to <strong>Night shift</strong>" in shown
    with pytest.raises(InvalidInput):
        claims.assign(actor(world.approver), interrupt.id, ["viewer"])
    with pytest.raises(InvalidInput):
        claims.assign(actor(world.approver), interrupt.id, [], ["Day shift"])
    with pytest.raises(NotAllowed):
        claims.assign(actor(world.operator), interrupt.id, ["approver"])

    claims.assign(actor(world.approver), interrupt.id, ["approver"])
    assert interrupt in for_me(world.approver) and interrupt not in for_me(world.approver2)
    claims.assign(actor(world.approver2), interrupt.id, [])
    assert interrupt in for_me(world.approver2)
    assert not Assignment.objects.exists()
    assert vote(world.approver2, interrupt).status == "approved"


def test_what_is_put_off_comes_back_by_itself_and_for_others_it_never_went(world: World) -> None:
    interrupt = world.ask()
    client = Client()
    client.force_login(world.approver)

    client.post(f"/inbox/{interrupt.id}/share/", {"do": "snooze", "minutes": "60"})

    assert interrupt not in for_me(world.approver) and interrupt in for_me(world.approver2)
    assert "write_file" in page(world.approver, "/inbox/?view=snoozed&fragment=list")
    assert "write_file" not in page(world.approver2, "/inbox/?view=snoozed&fragment=list")
    Snooze.objects.update(until=clock.now() - HOUR)
    assert interrupt in for_me(world.approver)
    assert "write_file" not in page(world.approver, "/inbox/?view=snoozed&fragment=list")
    client.post(f"/inbox/{interrupt.id}/share/", {"do": "snooze", "minutes": "60"})
    client.post(f"/inbox/{interrupt.id}/share/", {"do": "snooze", "minutes": "0"})
    assert interrupt in for_me(world.approver)
    refused = client.post(
        f"/inbox/{interrupt.id}/share/", {"do": "snooze", "minutes": "-5"}, follow=True
    )
    assert "Nothing was done: minutes" in refused.content.decode()
    assert client.get(f"/inbox/{interrupt.id}/share/").status_code == 302
    client.force_login(world.stranger)
    assert client.get(f"/inbox/{interrupt.id}/share/").status_code == 404
    assert client.post(f"/inbox/{interrupt.id}/share/", {"do": "claim"}).status_code == 404


def test_who_stands_in_decides_what_the_other_may_and_no_more(world: World) -> None:
    interrupt = world.ask(risk="medium")
    assert not ruling_on(interrupt, world.viewer.pk).may

    made = stand_in(world, world.approver, world.viewer, max_risk="medium", tool="write_file")

    assert ruling_on(interrupt, world.viewer.pk).stands_in_for == (world.approver.pk,)
    assert interrupt in waiting_for(world.viewer)
    for other in (world.ask(risk="high"), world.ask("run_command", {"argv": ["ls"]})):
        assert not ruling_on(other, world.viewer.pk).may
        assert other not in waiting_for(world.viewer)
    for change in (
        {"starts_at": clock.now() + HOUR / 2},
        {"starts_at": clock.now() - HOUR, "ends_at": clock.now() - HOUR / 2},
        {"revoked_at": clock.now()},
    ):
        kept = {name: getattr(made, name) for name in change}
        Delegation.objects.filter(id=made.id).update(**change)
        assert not ruling_on(interrupt, world.viewer.pk).may, change
        assert interrupt not in waiting_for(world.viewer)
        Delegation.objects.filter(id=made.id).update(**kept)

    vote(world.viewer, interrupt)

    (kept,) = Decision.objects.all()
    assert (kept.actor, kept.seat) == (world.viewer, world.approver)
    assert said(interrupt) == ["viewer for approver approved write_file"]
    assert audited("interrupt.decided")[0]["in_place_of"] == world.approver.pk
    assert "approved version 1 for approver" in page(world.viewer, f"/inbox/{interrupt.id}/")
    assert guard().revoked(interrupt.id) is None
    Membership.objects.filter(user=world.approver).update(role="viewer")
    assert "no longer has the right" in str(guard().revoked(interrupt.id))
    Membership.objects.filter(user=world.approver).update(role="approver")
    delegation.revoke(actor(world.viewer), world.viewer, made.id)
    assert "no longer has the right" in str(guard().revoked(interrupt.id))


def test_nobody_decides_on_their_own_run_by_standing_in_or_being_stood_in_for(
    world: World,
) -> None:
    stand_in(world, world.approver, world.operator)
    stand_in(world, world.approver2, world.viewer)
    by_operator = world.ask(risk="high", run=world.run(by=world.operator))
    by_approver2 = world.ask(risk="high", run=world.run(by=world.approver2))
    for person, interrupt in ((world.operator, by_operator), (world.viewer, by_approver2)):
        assert not ruling_on(interrupt, person.pk).may
        assert interrupt not in waiting_for(person)
        with pytest.raises(NotAllowed):
            vote(person, interrupt)
    assert ruling_on(by_approver2, world.operator.pk).may


def test_a_person_and_who_stands_in_for_them_are_not_two_people(world: World) -> None:
    stand_in(world, world.approver, world.viewer)
    first, second = world.ask(), world.ask()
    Interrupt.objects.update(required=2)
    for interrupt in (first, second):
        interrupt.refresh_from_db()

    assert vote(world.viewer, first).status == "open"
    with pytest.raises(AlreadyDecided, match="stands in for you"):
        vote(world.approver, first)
    assert vote(world.approver, second).status == "open"
    with pytest.raises(AlreadyDecided):
        vote(world.viewer, second)

    assert vote(world.approver2, first).status == "approved"
    kept = Decision.objects.filter(interrupt=second).get()
    with pytest.raises(IntegrityError), transaction.atomic():
        Decision.objects.create(
            interrupt=second, actor=world.viewer, seat=kept.seat, actor_name="viewer", via="web",
            action="approve", version=kept.version, digest=kept.digest, payload_digest="x",
        )  # fmt: skip


def test_who_may_have_somebody_stand_in_and_end_it(world: World) -> None:
    admin = make_user("boss", world.project, "admin")
    wish = delegation.Wish(ends_at=clock.now() + HOUR)
    with pytest.raises(NotAllowed):
        delegation.delegate(
            actor(world.viewer), world.viewer, world.project, world.approver, world.viewer, wish
        )
    machine = replace(actor(world.approver), via="machine")
    with pytest.raises(NotAllowed, match="service token"):
        delegation.delegate(
            machine, world.approver, world.project, world.approver, world.viewer, wish
        )
    made = delegation.delegate(
        actor(admin), admin, world.project, world.approver, world.viewer, wish
    )
    assert made.created_by == admin
    for to, more, field in (
        (world.approver, {}, "delegate"),
        (world.stranger, {}, "delegate"),
        (world.viewer, {"ends_at": clock.now() - HOUR}, "ends_at"),
        (world.viewer, {"ends_at": clock.now() + dt.timedelta(days=400)}, "ends_at"),
        (world.viewer, {"max_risk": "any"}, "max_risk"),
    ):
        bad = delegation.Wish(**{"ends_at": clock.now() + HOUR, **more})
        with pytest.raises(InvalidInput) as caught:
            delegation.delegate(
                actor(world.approver), world.approver, world.project, world.approver, to, bad
            )
        assert caught.value.data["field"] == field
    with pytest.raises(NotAllowed):
        delegation.revoke(actor(world.operator), world.operator, made.id)
    with pytest.raises(NotFound):
        delegation.revoke(actor(world.stranger), world.stranger, made.id)

    client = Client()
    client.force_login(world.approver)
    form = {
        "project": str(world.project.id), "delegate": "operator", "max_risk": "high", "tool": "",
        "until": f"{clock.now() + dt.timedelta(days=2):%Y-%m-%d}",
    }  # fmt: skip
    assert client.post("/inbox/delegations/", form).status_code == 302
    assert client.post("/inbox/delegations/", {**form, "delegate": "stranger"}).status_code == 422
    mine = Delegation.objects.get(delegate=world.operator)
    assert client.post("/inbox/delegations/", {"end": str(mine.id)}).status_code == 302
    mine.refresh_from_db()
    assert mine.revoked_at is not None
    assert [one["actor"] for one in audited("delegation.created")] == ["boss", "approver"]
    assert [one["actor"] for one in audited("delegation.revoked")] == ["approver"]


def test_views_are_a_persons_own_or_a_projects(world: World) -> None:
    client = Client()
    client.force_login(world.approver)
    form = {"name": "Grave ones", "query": "view=all&risk=high&evil=<b>", "project": ""}

    client.post("/inbox/views/", {**form, "is_default": "on"})
    client.post("/inbox/views/", {**form, "name": "Ours", "project": str(world.project.id)})

    assert saved_views.default_query(world.approver) == "view=all&risk=high"
    assert sorted(one.name for one in saved_views.visible(world.approver)) == ["Grave ones", "Ours"]
    assert [one.name for one in saved_views.visible(world.viewer)] == ["Ours"]
    assert [*saved_views.visible(world.stranger)] == []
    with pytest.raises(NotAllowed):
        saved_views.save(world.viewer, "Mine for all", "view=all", project=world.project)
    ours = SavedView.objects.get(name="Ours")
    with pytest.raises(NotAllowed):
        saved_views.delete(world.viewer, ours.id)
    client.post("/inbox/views/", {"delete": str(ours.id)})
    assert not SavedView.objects.filter(name="Ours").exists()
    saved_views.save(world.approver, "Other", "view=mine", is_default=True)
    assert SavedView.objects.filter(is_default=True).get().name == "Other"


def test_programs_share_the_work_too(world: World) -> None:
    client = Client()
    client.force_login(world.approver)
    interrupt = world.ask()

    def post(path: str, body: Any = None) -> Any:
        return client.post(f"/api/v1{path}", body or {}, content_type="application/json")

    assert post(f"/interrupts/{interrupt.id}/claim").json()["holder"] == "approver"
    assert post(f"/interrupts/{interrupt.id}/release").json() == {"holder": None}
    given = post(f"/interrupts/{interrupt.id}/assignments", {"people": ["approver2"]})
    assert given.json() == {"people": ["approver2"], "groups": []}
    assert post(f"/interrupts/{interrupt.id}/snooze", {"minutes": 5}).json()["until"]
    body = {"project": "demo", "delegate": "viewer", "ends_at": (clock.now() + HOUR).isoformat()}
    made = post("/delegations", body)
    assert made.status_code == 201
    ended = post(f"/delegations/{made.json()['id']}/revoke")
    assert ended.json()["revoked_at"]
    assert len(client.get("/api/v1/delegations").json()["items"]) == 1
    assert client.get("/api/v1/grants").json() == {"items": []}
    assert post("/inbox/views", {"name": "A", "query": "view=all"}).status_code == 201
    assert client.get("/api/v1/inbox/views").json()["items"][0]["query"] == "view=all"
    client.force_login(world.stranger)
    assert post(f"/interrupts/{interrupt.id}/claim").status_code == 404
    assert post(f"/delegations/{made.json()['id']}/revoke").status_code == 404
    assert client.get("/api/v1/delegations").json() == {"items": []}


def test_a_superuser_who_is_no_member_has_no_vote_by_standing_in(world: World) -> None:
    root = make_user("root")
    root.is_superuser = True
    root.save()
    interrupt = world.ask()

    with pytest.raises(InvalidInput):
        stand_in(world, world.approver, root)
    stand_in(world, world.approver, world.viewer)
    Delegation.objects.update(delegate=root)

    with pytest.raises(NotAllowed):
        vote(root, interrupt)
    assert not Decision.objects.exists()

"""The lines of the inbox's list: what they tell of each request, and what becomes of one that is done."""

from __future__ import annotations

from typing import Any

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from approvals.deciding.changing import propose
from approvals.deciding.commands import Opinion, decide
from approvals.teamwork import claims, saved_views
from runtime_core.models import Interrupt
from tests.approvals.world import World, as_actor


def client_of(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


def row_of(user: Any, interrupt: Interrupt) -> str:
    """The row as this person's page fetches it."""
    response = client_of(user).get(f"/inbox/{interrupt.id}/row/", {"view": "mine"})
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


def vote(user: Any, interrupt: Interrupt, action: str = "approve", **more: Any) -> None:
    opinion = Opinion(action, interrupt.version, interrupt.digest, **more)
    decide(as_actor(user), interrupt.id, opinion, undoable=True)


def test_a_row_tells_who_looks_after_it_and_how_many_have_agreed(world: World) -> None:
    interrupt = world.ask("issue_refund", {"amount": "20.00"}, risk="critical", ruled=True)
    claims.claim(as_actor(world.approver), interrupt.id)
    before = row_of(world.approver2, interrupt)

    vote(world.approver, interrupt)

    assert "approver looks after it" in before
    assert "0 of 2 people" in before
    assert "data-gone>" not in before
    assert "1 of 2 people" in row_of(world.approver2, interrupt)
    # It is out of the way of whoever has voted, who can still take that back.
    mine = row_of(world.approver, interrupt)
    assert "Waits for others now" in mine
    assert "data-gone>" in mine
    assert f'action="/inbox/{interrupt.id}/undo/' in mine


def test_a_decided_row_is_a_receipt_and_only_who_decided_may_take_it_back(world: World) -> None:
    world.policy(undo_seconds=60)
    interrupt = world.ask(ruled=True)
    vote(world.approver, interrupt)

    mine, other = row_of(world.approver, interrupt), row_of(world.approver2, interrupt)

    for row in (mine, other):
        assert "No longer open" in row
        assert "by approver," in row
    assert "Undo" in mine
    assert "Undo" not in other


def test_a_row_is_secret_where_its_request_is(world: World) -> None:
    path = f"/inbox/{world.ask().id}/row/"

    assert client_of(world.stranger).get(path).status_code == 404
    assert Client().get(path).status_code == 302
    assert client_of(world.approver).post(path).status_code == 405


def test_more_rows_cost_no_more_statements(world: World) -> None:
    client, run = client_of(world.approver), world.run()
    world.ask(run=run, ruled=True)

    def statements() -> int:
        with CaptureQueriesContext(
            connection,
        ) as caught:
            assert client.get("/inbox/?view=mine").status_code == 200
        return len(caught)

    statements()
    few = statements()
    for _ in range(5):
        claims.claim(as_actor(world.approver), world.ask(run=run, ruled=True).id)

    assert statements() == few


def test_a_snoozed_request_is_put_away_and_the_list_is_shown_again(world: World) -> None:
    client, interrupt = client_of(world.approver), world.ask()
    path = f"/inbox/{interrupt.id}/share/?view=mine&risk=medium"

    response = client.post(path, {"do": "snooze", "minutes": "60"}, follow=True)

    assert response.redirect_chain == [("/inbox/?view=mine&risk=medium", 302)]
    page = response.content.decode()
    assert "Out of your sight until" in page
    assert f'id="row-{interrupt.id}"' not in page
    back = client.post(path, {"do": "snooze", "minutes": "0"})
    assert back["Location"] == f"/inbox/{interrupt.id}/?view=mine&risk=medium"


def test_only_who_may_start_runs_is_offered_to(world: World) -> None:
    offered = {
        user.username: "/runs/new/" in client_of(user).get("/inbox/").content.decode()
        for user in (world.operator, world.approver, world.viewer, world.stranger)
    }

    assert offered == {"operator": True, "approver": False, "viewer": False, "stranger": False}


def test_saved_views_are_one_click_away_for_those_whose_they_are(world: World) -> None:
    saved_views.save(world.approver, "Only small", "view=mine&risk=low")
    saved_views.save(world.approver, "Team's risks", "view=all&risk=high", project=world.project)

    seen = {
        user.username: client_of(user).get("/inbox/?view=mine&risk=low").content.decode()
        for user in (world.approver, world.viewer, world.stranger)
    }

    link = (
        '<a class="chip-link" href="/inbox/?view=mine&amp;risk=low" aria-current="page">Only small'
    )
    assert link in seen["approver"]
    assert "Only small" not in seen["viewer"]
    assert "Team&#x27;s risks" in seen["viewer"]
    assert "chip-link" not in seen["stranger"]


def test_a_conflict_says_who_changed_the_request_and_how(world: World) -> None:
    interrupt = world.ask(ruled=True)
    less = Opinion(
        "edit", 1, interrupt.digest, {"path": "calc.py", "content": ""}, reason="Nothing at all."
    )
    propose(as_actor(world.approver2), interrupt.id, less)
    form = {"action": "approve", "version": "1", "digest": interrupt.digest}

    response = client_of(world.approver).post(f"/inbox/{interrupt.id}/", form)

    assert response.status_code == 409
    page = " ".join(response.content.decode().split())
    assert "(version 1 → 2)" in page
    assert "<p>Changed, to be decided on by approver2, <time" in page

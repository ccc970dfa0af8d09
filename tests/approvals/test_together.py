"""Several requests on one sheet: each whole, each decided on its own version, none that is too risky."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from approvals.deciding import commands
from approvals.deciding.opinion import Opinion
from approvals.queries import LIST_MAX
from runtime_core.models import Interrupt
from tests.approvals.test_pages import bare, client_of, text_of
from tests.approvals.world import World, as_actor, audited

pytestmark = pytest.mark.django_db

SHEET = "/inbox/together/"


@pytest.fixture
def approver(world: World) -> Client:
    return client_of(world.approver)


def sheet(client: Client, *requests: Interrupt) -> HttpResponse:
    return client.get(SHEET, {"id": [str(one.id) for one in requests]})


def items(*requests: Interrupt) -> list[str]:
    return [f"{one.id}:{one.version}:{one.digest}" for one in requests]


def decide(client: Client, chosen: list[str], action: str = "approve", reason: str = "") -> Any:
    return client.post(SHEET, {"item": chosen, "action": action, "reason": reason})


def status_of(request: Interrupt) -> str:
    return Interrupt.objects.get(id=request.id).status


def test_each_is_shown_whole_and_decided_by_itself(world: World, approver: Client) -> None:
    first, second, third = (
        world.ask(risk="medium", args={"path": f"{n}.txt", "content": "x" * 5_000}) for n in "abc"
    )
    page = text_of(sheet(approver, first, second))
    assert page.count("x" * 5_000) == 2
    assert {entry["object"] for entry in audited("interrupt.viewed")} == {
        str(first.id),
        str(second.id),
    }

    answer = decide(approver, items(first, second))
    assert answer.status_code == 200
    assert "Approved: 2 of 2" in bare(answer)
    assert [status_of(one) for one in (first, second, third)] == ["approved", "approved", "open"]
    assert len(audited("interrupt.decided")) == 2


def test_one_that_changed_or_is_gone_keeps_no_other_back(world: World, approver: Client) -> None:
    good, changed, decided, foreign = (world.ask(risk="low") for _ in range(4))
    chosen = items(good, changed, decided, foreign)
    Interrupt.objects.filter(id=changed.id).update(version=2)
    commands.decide(
        as_actor(world.approver2),
        decided.id,
        Opinion("reject", decided.version, decided.digest, reason="No."),
    )
    answer = decide(approver, [*chosen[:3], f"{foreign.run_id}:1:{foreign.digest}"])
    text = bare(answer)
    assert "Approved: 1 of 4" in text
    assert "changed while you were looking" in text
    assert "decided this already" in text
    assert "A request that is not there for you" in text
    assert [status_of(one) for one in (good, changed, decided)] == ["approved", "open", "rejected"]


@pytest.mark.parametrize("risk", ["high", "critical"])
def test_high_risk_is_never_decided_in_a_row(world: World, approver: Client, risk: str) -> None:
    low, high = world.ask(risk="low"), world.ask(risk=risk)
    for answer in (sheet(approver, low, high), decide(approver, items(low, high))):
        assert answer.status_code == 422
        assert "one by one" in bare(answer)
    assert [status_of(one) for one in (low, high)] == ["open", "open"]


def test_what_does_not_belong_together_is_refused_before_anything_is_decided(
    world: World, approver: Client
) -> None:
    low = world.ask(risk="low")
    other = world.ask(risk="low", tool="apply_patch", args={"patch": "x"})
    many = [low] * 21
    for chosen, said in (
        (items(low, other), "same tool"),
        (items(*many), "At most 20"),
        ([], "Select"),
    ):
        answer = decide(approver, chosen)
        assert answer.status_code == 422
        assert said in bare(answer)
    for broken in ("", "x:1:y", f"{low.id}:-1:{low.digest}", f"{low.id}:{low.digest}"):
        assert decide(approver, [broken]).status_code == 422
    assert decide(approver, items(low), "edit").status_code == 422
    assert "Say why" in bare(decide(approver, items(low), "reject"))
    assert status_of(low) == "open"


def test_a_rejection_gives_each_the_same_reason(world: World, approver: Client) -> None:
    both = [world.ask(risk="medium") for _ in range(2)]
    decide(approver, items(*both), "reject", "Not needed today.")
    rows = Interrupt.objects.filter(id__in=[one.id for one in both])
    assert {(row.status, row.comment) for row in rows} == {("rejected", "Not needed today.")}


def test_a_stranger_learns_nothing_and_decides_nothing(world: World) -> None:
    secret = world.ask(risk="low", args={"path": "plans.txt", "content": "merger"})
    for person, may_look in ((world.stranger, False), (world.viewer, True)):
        client = client_of(person)
        page = sheet(client, secret)
        assert page.status_code == (200 if may_look else 404)
        answer = decide(client, items(secret))
        assert "0 of 1" in bare(answer)
        assert ("write_file" in text_of(answer)) is may_look
    assert status_of(secret) == "open"
    assert len(audited("decision.denied")) == 2
    assert Client().get(SHEET).status_code == 302


def test_the_list_offers_what_may_be_reviewed_together(world: World, approver: Client) -> None:
    low, high = world.ask(risk="low"), world.ask(risk="high")
    page = text_of(approver.get(reverse("inbox")))
    assert f'form="together" name="id" value="{low.id}"' in page
    assert f'form="together" name="id" value="{high.id}"' not in page


def test_a_long_list_goes_on_where_the_page_ended(world: World, approver: Client) -> None:
    run = world.run()
    asked = [world.ask(run=run, risk="low") for _ in range(LIST_MAX + 3)]
    seen: list[str] = []
    address = reverse("inbox")
    for _ in range(2):
        page = text_of(approver.get(address))
        seen += re.findall(r'data-interrupt-id="([0-9a-f-]{36})"', page)
        address = "/inbox/?" + html.unescape(
            (re.findall(r'href="/inbox/\?([^"]*after=[^"]*)"', page) or ["none"])[0]
        )
    assert seen == [str(one.id) for one in asked]
    assert "From the top" in page
    assert approver.get("/inbox/?after=nonsense").status_code == 200

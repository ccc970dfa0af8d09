"""The inbox's list: what it is narrowed to, in which order it comes, and what a saved view keeps of that."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import pytest
from django.test import Client

from approvals.inbox.desk import Desk, Filters
from approvals.teamwork import saved_views
from runtime_core import clock
from runtime_core.models import Interrupt
from tests.approvals.world import World

pytestmark = pytest.mark.django_db


@pytest.fixture
def four(world: World) -> list[Interrupt]:
    """Four requests of other risks, of which the riskiest expires last."""
    asked = [world.ask() for _ in range(4)]
    for place, (one, risk) in enumerate(
        zip(asked, ("low", "high", "medium", "critical"), strict=True)
    ):
        expires = clock.now() + dt.timedelta(hours=1 + place)
        Interrupt.objects.filter(id=one.id).update(risk=risk, expires_at=expires)
    return list(Interrupt.objects.order_by("expires_at"))


@pytest.mark.parametrize(
    ("sort", "risks"),
    [
        ("expiry", ["low", "high", "medium", "critical"]),
        ("risk", ["critical", "high", "medium", "low"]),
        ("newest", ["critical", "medium", "high", "low"]),
        ("oldest", ["low", "high", "medium", "critical"]),
    ],
)
def test_the_list_comes_in_the_order_that_is_asked_for(
    world: World, four: list[Interrupt], sort: str, risks: list[str]
) -> None:
    page = Desk(world.approver).page(Filters(sort=sort))
    assert [one.risk for one in page.items] == risks


def test_of_two_that_expire_together_the_riskier_comes_first(
    world: World, four: list[Interrupt]
) -> None:
    Interrupt.objects.update(expires_at=four[0].expires_at)
    page = Desk(world.approver).page(Filters())
    assert [one.risk for one in page.items] == ["critical", "high", "medium", "low"]


@pytest.mark.parametrize("sort", ["expiry", "risk", "newest", "oldest"])
def test_pages_follow_each_other_without_a_gap_or_a_repeat(
    world: World, four: list[Interrupt], sort: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, seen, cursor = Desk(world.approver), [], ""
    monkeypatch.setattr("approvals.queries.LIST_MAX", 1)
    for _ in range(len(four)):
        page = desk.page(Filters(sort=sort), cursor)
        seen += page.items
        cursor = page.next_cursor or ""
    assert not cursor and {one.id for one in seen} == {one.id for one in four}
    assert len(seen) == len(four)


def test_the_list_is_narrowed_to_a_tool(world: World, four: list[Interrupt]) -> None:
    call = four[0].tool_call
    type(call).objects.filter(id=call.id).update(tool="another_tool")
    desk = Desk(world.approver)
    assert [one.id for one in desk.page(Filters(tool="another_tool")).items] == [four[0].id]
    assert desk.page(Filters(tool="no_such_tool")).items == []


def test_a_saved_view_keeps_tool_and_sort(
    world: World, four: list[Interrupt], client: Client
) -> None:
    query = f"view=mine&tool={four[0].tool_call.tool}&sort=risk"
    saved_views.save(world.approver, "Riskiest", query, is_default=True)
    client.force_login(world.approver)
    page = client.get("/inbox/", follow=True)
    assert page.redirect_chain[-1][0].endswith(query)
    assert page.context["rows"][0].interrupt.risk == "critical"
    assert re.search(r'<option value="risk" selected>', page.content.decode())


def test_an_address_with_nonsense_is_the_plain_list(
    world: World, four: list[Interrupt], client: Client
) -> None:
    client.force_login(world.approver)
    page = client.get("/inbox/?view=x&sort=drop+table&risk=9&after=%00")
    assert page.status_code == 200 and len(page.context["rows"]) == 4


def test_the_first_page_takes_as_many_statements_for_many_rows_as_for_one(
    world: World, four: list[Interrupt], client: Client, django_assert_max_num_queries: Any
) -> None:
    client.force_login(world.approver)
    client.get("/inbox/?view=mine")
    with django_assert_max_num_queries(20):
        client.get("/inbox/?view=mine")

"""Two people, or one impatient finger, at one request: the first decision counts and nothing else is decided."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.config.stack_process import wait_for
from tests.e2e.conftest import People
from tests.e2e.product import Product

pytestmark = [pytest.mark.browser, pytest.mark.timeout(90)]

MINE = "The words that I took ten minutes to find"


@pytest.mark.parametrize("scripted", [True, False], ids=["with scripts", "without scripts"])
def test_the_later_one_keeps_the_edits(product: Product, people: People, scripted: bool) -> None:
    first, second = people("approver"), people("approver2", java_script_enabled=scripted)
    run = product.start_run("notices")
    asked = product.open_interrupt(run)
    fast = first.open(f"/inbox/{asked['id']}/")
    slow = second.open(f"/inbox/{asked['id']}/")
    slow.locator("summary", has_text="Edit").first.click()
    slow.get_by_label("text").first.fill(MINE)

    fast.locator("#detail").get_by_role("button", name="Approve").first.click()
    expect(fast.locator(".receipt")).to_be_visible()
    with slow.expect_response(lambda response: response.request.method == "POST") as answer:
        slow.get_by_role("button", name="Approve with edits").first.click()

    assert answer.value.status == 409
    conflict = slow.locator(".conflict")
    expect(conflict.get_by_role("heading", name="approver decided this")).to_be_visible()
    expect(conflict).to_contain_text("Nothing of yours was sent")
    expect(conflict.locator("#my-edits")).to_contain_text(MINE)
    assert decided(product, run) == [("approve", "approver")]
    assert MINE not in str(product.results(run))
    product.decide(product.open_interrupt(run))


def test_the_other_one_sees_it_at_once(
    product: Product, people: People, nothing_open: None
) -> None:
    run = product.start_run("notices")
    asked = product.open_interrupt(run)
    page = people("approver2").open("/inbox/")
    row = page.locator(f"[data-interrupt-id='{asked['id']}']")
    expect(row).to_be_visible()

    product.decide(asked)

    expect(row).to_contain_text("No longer open")
    product.decide(product.open_interrupt(run))


@pytest.mark.parametrize("scripted", [True, False], ids=["with scripts", "without scripts"])
def test_a_double_click_never_decides_the_next_request(
    product: Product, people: People, scripted: bool
) -> None:
    approver = people("approver", java_script_enabled=scripted)
    run = product.start_run("notices")
    asked = product.open_interrupt(run)
    page = approver.open(f"/inbox/{asked['id']}/")

    page.locator("#detail").get_by_role("button", name="Approve").first.dblclick(no_wait_after=True)
    expect(page.locator(".receipt")).to_be_visible()

    wait_for(lambda: product.open_interrupt(run)["id"] != asked["id"], what="the next request")
    following = product.open_interrupt(run)
    assert following["status"] == "open"
    assert decided(product, run) == [("approve", "approver")]
    product.decide(following)
    product.wait_for_status(run, "completed")
    assert len(decided(product, run)) == 2


def test_the_same_form_sent_again_decides_nothing_more(product: Product, people: People) -> None:
    approver = people("approver")
    run = product.start_run("notices")
    asked = product.open_interrupt(run)
    page = approver.open(f"/inbox/{asked['id']}/")
    form = page.locator("form.decide-approve")
    fields: dict[str, Any] = {
        name: form.locator(f"input[name={name}]").first.input_value()
        for name in ("csrfmiddlewaretoken", "version", "digest")
    } | {"action": "approve"}
    headers = {"Referer": page.url}

    answers = [
        page.request.post(page.url, form=fields, headers=headers, max_redirects=0) for _ in range(3)
    ]

    assert [answer.status for answer in answers] == [302, 302, 302]
    following = product.open_interrupt(run)
    # Even sent to the next request's own address, what was read of the first one decides nothing.
    wrong = page.request.post(
        f"/inbox/{following['id']}/", form=fields, headers=headers, max_redirects=0
    )
    assert wrong.status == 409
    assert decided(product, run) == [("approve", "approver")]
    product.decide(following)


def decided(product: Product, run: str) -> list[tuple[str, str]]:
    """The decisions that were stored, as (action, who)."""
    rows = product.rows(
        "SELECT d.action, u.username FROM decision d JOIN interrupt i ON i.id = d.interrupt_id "
        "JOIN auth_user u ON u.id = d.actor_id WHERE i.run_id = %s ORDER BY d.created_at",
        run,
    )
    return [(row["action"], row["username"]) for row in rows]

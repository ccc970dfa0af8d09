"""Forms do their work in a browser that runs no script."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import People
from tests.e2e.product import Product

pytestmark = [pytest.mark.browser, pytest.mark.timeout(90)]


def test_a_run_is_started_decided_on_and_ends(product: Product, people: People) -> None:
    operator = people("operator", java_script_enabled=False)
    approver = people("approver", java_script_enabled=False)
    page = operator.open("/runs/new/")
    run = operator.start_run(page, "notices", "Post two notices")
    product.open_interrupt(run)
    page.reload()
    expect(page.locator("#run-header")).to_contain_text("Waiting for approval")

    inbox = approver.open(f"/runs/{run}/")
    inbox.get_by_role("link", name="Decide", exact=True).click()
    inbox.locator("summary", has_text="Edit").first.click()
    inbox.get_by_label("text").fill("Notice in other words")
    inbox.get_by_role("button", name="Approve with edits").first.click()
    expect(inbox.locator(".receipt")).to_contain_text("Approved with edits")

    product.open_interrupt(run)
    inbox.goto(f"/runs/{run}/")
    inbox.get_by_role("link", name="Decide", exact=True).click()
    inbox.locator("summary", has_text="Reject").click()
    inbox.get_by_role("button", name="Reject", exact=True).click()
    expect(inbox.locator(".error-summary")).to_be_visible()
    inbox.get_by_role("textbox", name="Reason").fill("One is enough.")
    inbox.get_by_role("button", name="Reject", exact=True).click()
    expect(inbox.locator(".receipt")).to_contain_text("One is enough.")

    product.wait_for_status(run, "completed")
    calls = product.rows("SELECT status FROM tool_call WHERE run_id = %s ORDER BY step", run)
    assert [call["status"] for call in calls] == ["succeeded", "rejected"]
    assert "posted 1 of: Notice in other words" in product.results(run)[0]


def test_a_run_is_cancelled_on_the_page_that_asks(product: Product, people: People) -> None:
    operator = people("operator", java_script_enabled=False)
    page = operator.open("/")
    run = operator.start_run(page, "notices", "Post two notices")
    product.open_interrupt(run)
    page.reload()

    page.get_by_role("link", name="Cancel run").click()
    expect(page.get_by_role("heading", name="Cancel run")).to_be_visible()
    assert product.get("operator", f"/runs/{run}")["status"] == "interrupted"
    page.get_by_role("button", name="Cancel run").click()

    product.wait_for_status(run, "cancelled")
    page.reload()
    expect(page.locator("#run-header")).to_contain_text("Cancelled")


def test_signing_in_leads_to_the_page_that_was_wanted(people: People) -> None:
    nobody = people("", java_script_enabled=False)
    page: Page = nobody.open("/inbox/?view=decided")
    expect(page.get_by_role("heading", name="Sign in to Interlock")).to_be_visible()

    page.get_by_label("User name").fill("approver")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator(".error-summary")).to_be_visible()
    page.get_by_label("Password").fill("interlock-demo")
    page.get_by_role("button", name="Sign in").click()

    page.wait_for_url("**/inbox/?view=decided")

"""H5: text of models, tools and people is text in every page and every frame, and nothing else."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browsing import Person
from tests.e2e.conftest import People
from tests.e2e.product import Product
from tests.e2e.test_browser_journey import open_request, status_of
from tests.e2e.texts import HOSTILE, HOSTILE_TEXT, MARK

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]

MADE_OF_TEXT = f"""
    () => [...document.querySelectorAll(
        "img[src*='{MARK}'], .{MARK}, [hx-post*='{MARK}'], [onerror], [onload], " +
        "a[href^='javascript:'], main script, svg [onload]"
    )].map((node) => node.outerHTML.slice(0, 200))
"""


def test_h5_hostile_text_is_never_run(product: Product, people: People, nothing_open: None) -> None:
    operator, approver = people("operator"), people("approver")
    live = operator.open("/")
    run = operator.start_run(live, "hostile", HOSTILE_TEXT)
    expect(live.locator("#run-header h1")).to_contain_text(HOSTILE[0])

    first = product.open_interrupt(run)
    inbox = approver.open("/inbox/")
    expect(inbox.locator("#inbox-list")).to_contain_text(HOSTILE[0])
    detail = open_request(approver, product, run)
    expect(detail).to_contain_text(HOSTILE[0])
    detail.locator("summary", has_text="Edit").first.click()
    assert detail.get_by_label("text").first.input_value() == HOSTILE_TEXT
    detail.locator("summary", has_text="Reject").click()
    detail.get_by_role("textbox", name="Reason").fill(HOSTILE_TEXT)
    check(detail.page)
    detail.get_by_role("button", name="Reject", exact=True).click()
    expect(detail.page.locator(".receipt")).to_contain_text(HOSTILE[0])
    check(detail.page)

    question = open_request(approver, product, run)
    expect(question).to_contain_text("asks a question")
    check(question.page)
    question.get_by_label(HOSTILE_TEXT).check()
    question.get_by_role("button", name="Send answer").click()
    expect(question.page.locator(".receipt")).to_be_visible()

    expect(status_of(live)).to_have_text("Completed")
    expect(live.locator("#answer")).to_contain_text(HOSTILE[1])
    expect(live.locator("[data-event-list]")).to_contain_text(HOSTILE[0])
    check(live)
    spans = [row["id"] for row in product.rows("SELECT id FROM span WHERE run_id = %s", run)]
    addresses = ["/", "/runs/", f"/runs/{run}/", "/inbox/?view=decided", f"/inbox/{first['id']}/", "/traces/",
                 f"/traces/{run}/", *(f"/traces/{run}/?span={span}" for span in spans), f"/audit/?run={run}",
                 f"/audit/?actor={HOSTILE[0]}", f"/runs/?agent={HOSTILE[5]}"]  # fmt: skip
    for address in addresses:
        live.goto(address)
        check(live)
    only_ours(product, operator)
    only_ours(product, approver)


def check(page: Page) -> None:
    """No element came out of the text, and no template was filled in from it."""
    assert page.evaluate(MADE_OF_TEXT) == []
    assert f"{MARK}:49" not in page.locator("body").inner_text()


def only_ours(product: Product, somebody: Person) -> None:
    """No dialog, no error, and no request that the product's own pages do not make."""
    somebody.check()
    for url in somebody.requests:
        assert url.startswith(product.origin), url
        assert MARK not in urlsplit(url).path and "/approve/" not in url, url

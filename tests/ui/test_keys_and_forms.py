"""Keys, forms, times and swaps: what a key may do at each risk, and that nothing is sent twice."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Page, Route, expect

from tests.ui.conftest import ORIGIN, OpenPage

pytestmark = pytest.mark.browser

REQUEST = """
<h1>Inbox</h1>
<input data-key-filter aria-label="Filter">
<ul data-key-list>
  <li data-key-row><a data-key-open href="#one">one</a></li>
  <li data-key-row><a data-key-open href="#two">two</a></li>
</ul>
<article data-key-detail data-risk="{risk}" tabindex="-1" id="detail">
  <div data-payload>{payload}</div>
  <form method="post" action="/decide/">
    <textarea id="reason" aria-label="Reason"></textarea>
    {confirm}
    <div class="action-bar">
      <button type="submit" data-key="a" data-needs-confirm id="approve">Approve</button>
      <button type="button" class="btn" data-key="d" data-key-focus="#reason">Reject</button>
    </div>
  </form>
</article>
"""


class Sent:
    """Counts what reached the server."""

    def __init__(self, status: int = 204) -> None:
        self.count = 0
        self.status = status

    def __call__(self, route: Route) -> None:
        self.count += 1
        route.fulfill(status=self.status, body="")


def request_page(
    open_page: OpenPage, sent: Sent, risk: str, payload: str = "ls", confirm: str = ""
) -> Page:
    content = (
        REQUEST.replace("{risk}", risk).replace("{payload}", payload).replace("{confirm}", confirm)
    )
    page = open_page(content, answers={"/decide/": sent})
    page.wait_for_function("document.querySelector('[data-keys-toggle]')")
    page.wait_for_load_state("load")
    return page


def eventually(page: Page, truth: Callable[[], bool]) -> None:
    for _ in range(100):
        if truth():
            return
        page.wait_for_timeout(20)
    raise AssertionError("it did not come true within 2 s")


@pytest.mark.parametrize("risk", ["low", "medium"])
def test_a_approves_low_risk_when_the_whole_payload_is_in_view(
    open_page: OpenPage, risk: str
) -> None:
    sent = Sent()
    page = request_page(open_page, sent, risk)

    page.locator("#detail").focus()
    page.keyboard.press("a")

    eventually(page, lambda: sent.count == 1)


def test_a_pages_through_a_long_payload_before_it_approves(open_page: OpenPage) -> None:
    sent = Sent()
    page = request_page(open_page, sent, "low", "line<br>" * 120)

    page.locator("#detail").focus()
    page.keyboard.press("a")
    page.wait_for_timeout(100)
    assert sent.count == 0
    presses = 1
    while sent.count == 0 and presses < 20:
        page.keyboard.press("a")
        page.wait_for_timeout(60)
        presses += 1

    assert sent.count == 1
    assert presses > 2


def test_a_only_moves_to_the_button_at_high_risk(open_page: OpenPage) -> None:
    sent = Sent()
    page = request_page(open_page, sent, "high")

    page.locator("#detail").focus()
    page.keyboard.press("a")

    expect(page.locator("#approve")).to_be_focused()
    assert sent.count == 0
    page.keyboard.press("Enter")
    eventually(page, lambda: sent.count == 1)


def test_critical_risk_asks_for_the_name_of_the_tool(open_page: OpenPage) -> None:
    sent = Sent()
    confirm = '<input id="name" aria-label="Tool" data-confirm-text="issue_refund">'
    page = request_page(open_page, sent, "critical", confirm=confirm)

    page.locator("#detail").focus()
    page.keyboard.press("a")
    expect(page.locator("#name")).to_be_focused()
    page.keyboard.type("issue_refun")
    page.locator("#approve").click(force=True)
    page.wait_for_timeout(100)
    assert sent.count == 0
    page.locator("#name").fill("issue_refund")
    page.locator("#approve").click()

    eventually(page, lambda: sent.count == 1)


def test_letters_do_nothing_outside_list_and_request_and_while_typing(open_page: OpenPage) -> None:
    sent = Sent()
    page = request_page(open_page, sent, "low")

    page.keyboard.press("a")
    page.locator("#reason").focus()
    page.keyboard.press("a")
    page.wait_for_timeout(100)

    assert sent.count == 0
    expect(page.locator("#reason")).to_have_value("a")


def test_j_and_k_walk_the_list_slash_filters_d_goes_to_the_reason(open_page: OpenPage) -> None:
    page = request_page(open_page, Sent(), "low")

    page.locator("[data-key-open]").first.focus()
    page.keyboard.press("j")
    expect(page.locator("[data-key-open]").nth(1)).to_be_focused()
    page.keyboard.press("j")
    expect(page.locator("[data-key-open]").nth(1)).to_be_focused()
    page.keyboard.press("k")
    expect(page.locator("[data-key-open]").first).to_be_focused()
    page.keyboard.press("d")
    expect(page.locator("#reason")).to_be_focused()
    page.locator("[data-key-open]").first.focus()
    page.keyboard.press("/")
    expect(page.locator("[data-key-filter]")).to_be_focused()
    expect(page.locator("[data-key-filter]")).to_have_value("")


def test_keys_can_be_switched_off_and_stay_off(open_page: OpenPage) -> None:
    sent = Sent()
    page = request_page(open_page, sent, "low")

    page.locator("#detail").focus()
    page.keyboard.press("?")
    expect(page.locator("#keys-dialog")).to_be_visible()
    page.locator("[data-keys-toggle]").uncheck()
    page.keyboard.press("Escape")
    expect(page.locator("#detail")).to_be_focused()
    page.reload()
    page.locator("#detail").focus()
    page.keyboard.press("a")
    page.wait_for_timeout(100)

    assert sent.count == 0


def test_g_then_r_goes_to_the_runs(open_page: OpenPage) -> None:
    page = open_page("<h1>x</h1>", answers={"/runs/": lambda route: route.fulfill(body="runs")})
    page.wait_for_load_state("load")

    page.keyboard.press("g")
    page.keyboard.press("r")

    page.wait_for_url(f"{ORIGIN}/runs/")


def test_a_form_is_sent_once_however_often_it_is_pressed(open_page: OpenPage) -> None:
    sent = Sent()
    page = request_page(open_page, sent, "low")

    page.evaluate("for (let i = 0; i < 5; i++) document.querySelector('#approve').click()")
    page.wait_for_timeout(200)

    assert sent.count == 1


def test_a_form_ends_when_its_time_is_up(open_page: OpenPage) -> None:
    soon = (datetime.now(UTC) + timedelta(seconds=4)).isoformat()  # noqa: TID251
    content = (
        f'<h1>x</h1><time datetime="{soon}" data-when="countdown" data-announce-expiry>then</time>'
        f'<form method="post" data-expires="{soon}"><p data-expired-note hidden>Too late</p>'
        "<button>Approve</button></form>"
    )
    page = open_page(content)
    expect(page.get_by_role("button", name="Approve")).to_be_enabled()

    expect(page.get_by_role("button", name="Approve")).to_be_disabled()

    expect(page.locator("[data-expired-note]")).to_be_visible()
    expect(page.locator("time")).to_have_text("expired")
    expect(page.locator("#announce-alert")).to_contain_text("Expired")


@pytest.mark.parametrize(
    ("status", "target"),
    [(409, "#place"), (422, "#place"), (404, "#page-errors"), (503, "#page-errors")],
)
def test_an_htmx_answer_lands_where_a_reader_finds_it(
    open_page: OpenPage, status: int, target: str
) -> None:
    body = f'<div><h2 tabindex="-1" data-error data-focus>Answer {status}</h2></div>'
    page = open_page(
        '<h1>x</h1><div id="place"><button hx-post="/try/" hx-target="#place">Try</button></div>',
        answers={"/try/": lambda route: route.fulfill(status=status, body=body)},
    )
    page.wait_for_function("window.htmx")

    page.get_by_role("button", name="Try").click()

    expect(page.locator(f"{target} h2")).to_have_text(f"Answer {status}")
    expect(page.locator(f"{target} h2")).to_be_focused()


def test_a_request_that_never_arrived_is_said_inline(open_page: OpenPage) -> None:
    page = open_page(
        '<h1>x</h1><button hx-post="/try/">Try</button>',
        answers={"/try/": lambda route: route.abort()},
    )
    page.wait_for_function("window.htmx")

    page.get_by_role("button", name="Try").click()

    expect(page.locator("#page-errors")).to_contain_text("Nothing was sent")


def test_the_theme_is_chosen_before_the_first_paint_and_kept(open_page: OpenPage) -> None:
    page = open_page("<h1>x</h1>")
    button = page.locator("[data-theme-cycle]")
    assert page.evaluate("document.documentElement.dataset.theme") is None

    button.click()
    button.click()
    assert button.get_attribute("aria-label") == "Theme: dark"
    page.reload()

    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.faults == []  # type: ignore[attr-defined]

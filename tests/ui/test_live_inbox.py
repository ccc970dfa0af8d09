"""The inbox socket: counts everywhere, news without moving what a person is reading."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import Page, Route, WebSocketRoute, expect

from tests.ui.conftest import OpenPage

pytestmark = pytest.mark.browser

LIST = """
<div id="inbox-list" data-inbox-list data-refresh-url="/inbox-rows/">
  <div class="inbox-new" data-inbox-new hidden><button type="button"></button></div>
  <ul class="inbox-list" role="list">{rows}</ul>
</div>
"""
ROW = """
<li data-interrupt-id="{id}"><a class="title" href="#">{id}</a><span data-gone-note></span></li>
"""


def rows_of(*ids: str) -> str:
    return LIST.replace("{rows}", "".join(ROW.replace("{id}", one) for one in ids))


class Inbox:
    """One open socket that the test writes to."""

    def __init__(self) -> None:
        self.socket: WebSocketRoute | None = None
        self.fetched = 0

    def connect(self, socket: WebSocketRoute) -> None:
        self.socket = socket
        socket.send(json.dumps({"type": "hello", "seq": 0, "server_time": "2026-11-29T16:00:00Z"}))

    def say(self, *ids: str) -> None:
        assert self.socket is not None
        self.socket.send(json.dumps({"type": "inbox", "open": len(ids), "ids": list(ids)}))

    def page(self, open_page: OpenPage, content: str, fresh: str = "") -> Page:
        def rows(route: Route) -> None:
            self.fetched += 1
            route.fulfill(body=f"<main><p>a whole page</p>{fresh}</main>", content_type="text/html")

        page = open_page(
            f"<h1>Inbox</h1>{content}",
            {"/ws/inbox/": self.connect},
            {"/inbox-rows/": rows},
            title="Inbox",
        )
        page.wait_for_function("document.querySelector('[data-live-dot]').dataset.state === 'live'")
        return page


def test_the_count_shows_in_title_and_navigation_of_any_page(open_page: OpenPage) -> None:
    inbox = Inbox()
    page = inbox.page(open_page, "")
    badge = page.locator("nav [data-inbox-count]")
    expect(badge).to_be_hidden()

    inbox.say("a", "b", "c")

    expect(page).to_have_title("(3) Inbox")
    expect(badge).to_have_text("3")
    inbox.say("a")
    expect(page).to_have_title("(1) Inbox")
    inbox.say()
    expect(page).to_have_title("Inbox")
    expect(badge).to_be_hidden()


def test_a_rising_count_is_spoken_the_first_one_is_not(open_page: OpenPage) -> None:
    inbox = Inbox()
    page = inbox.page(open_page, "")

    inbox.say("a")
    expect(page).to_have_title("(1) Inbox")
    page.wait_for_timeout(400)
    expect(page.locator("#announce-status")).to_have_text("")
    inbox.say("a", "b")

    expect(page.locator("#announce-status")).to_have_text("2 requests are waiting in your inbox")


def test_new_rows_wait_behind_a_button(open_page: OpenPage) -> None:
    inbox = Inbox()
    page = inbox.page(open_page, rows_of("a"), fresh=rows_of("c", "b", "a"))

    inbox.say("a", "b", "c")

    button = page.locator("[data-inbox-new] button")
    expect(button).to_have_text("2 new, show")
    assert page.locator("[data-interrupt-id]").count() == 1
    button.click()
    expect(page.locator("[data-interrupt-id]")).to_have_count(3)
    expect(page.locator("[data-inbox-new]")).to_be_hidden()
    assert page.locator("text=a whole page").count() == 0


def test_an_empty_list_fills_itself(open_page: OpenPage) -> None:
    inbox = Inbox()
    page = inbox.page(open_page, rows_of(), fresh=rows_of("a"))

    inbox.say("a")

    expect(page.locator("[data-interrupt-id]")).to_have_count(1)
    assert inbox.fetched == 1


def test_a_row_that_somebody_decided_stays_and_says_so(open_page: OpenPage) -> None:
    inbox = Inbox()
    page = inbox.page(open_page, rows_of("a", "b"))

    inbox.say("b")

    expect(page.locator('[data-interrupt-id="a"] [data-gone-note]')).to_have_text("No longer open")
    expect(page.locator('[data-interrupt-id="b"] [data-gone-note]')).to_have_text("")


def test_each_change_is_an_event_that_htmx_can_listen_to(open_page: OpenPage) -> None:
    inbox = Inbox()
    calls: list[Any] = []
    content = '<div hx-get="/sample-part/" hx-trigger="inbox:changed from:body" id="part">old</div>'
    page = open_page(
        f"<h1>x</h1>{content}",
        {"/ws/inbox/": inbox.connect},
        {"/sample-part/": lambda route: (calls.append(1), route.fulfill(body="new"))[1]},
    )
    page.wait_for_function(
        "window.htmx && document.querySelector('[data-live-dot]').dataset.state === 'live'"
    )

    inbox.say("a")

    expect(page.locator("#part")).to_have_text("new")
    assert calls == [1]

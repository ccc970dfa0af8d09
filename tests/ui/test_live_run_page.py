"""The run page's socket in a real browser: nothing twice, nothing missing."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, WebSocketRoute, expect

from tests.ui.conftest import OpenPage

pytestmark = pytest.mark.browser

RUN = """
<h1>Run</h1>
<div data-live-run="r1" data-after="{after}">
  <div id="run-header"><details id="more"><summary>More</summary><p>was</p></details>
    <button id="stop">Stop</button></div>
  <span data-event-total>0</span>
  <div class="stream-scroll" data-event-scroll tabindex="0" role="region" aria-label="Events">
    <ol class="stream" role="list" data-event-list></ol>
    <div class="jump"><button type="button" data-jump-latest>Jump to latest</button></div>
  </div>
  <section id="answer" data-answer hidden><div class="answer" data-answer-text{answer}</div></section>
</div>
"""

Script = Callable[[WebSocketRoute, int, int], None]


class FakeRun:
    """Known events; `script(socket, after, connection)` says what a connection gets."""

    def __init__(self, events: list[dict[str, Any]], script: Script | None = None) -> None:
        self.events = events
        self.script = script or self.send_rest
        self.asked: list[int] = []
        self.sockets: list[WebSocketRoute] = []

    def connect(self, socket: WebSocketRoute) -> None:
        after = int(parse_qs(urlsplit(socket.url).query)["after"][0])
        self.asked.append(after)
        self.sockets.append(socket)
        self.script(socket, after, len(self.asked))

    def hello(self, socket: WebSocketRoute) -> None:
        hello = {"type": "hello", "seq": len(self.events), "server_time": "2026-11-29T16:00:00Z"}
        socket.send(json.dumps(hello))

    def send(self, socket: WebSocketRoute, first: int, last: int) -> None:
        for event in self.events[first - 1 : last]:
            socket.send(json.dumps(frame(event)))

    def send_rest(self, socket: WebSocketRoute, after: int, connection: int) -> None:
        self.hello(socket)
        self.send(socket, after + 1, len(self.events))


def frame(event: dict[str, Any]) -> dict[str, Any]:
    row = f'<li data-announce="said {event["seq"]}">row {event["seq"]}</li>'
    html = None if event["type"] == "text_delta" else row
    return {"type": "event", "seq": event["seq"], "html": html, "event": event}


def deltas(count: int, text: str = "ha", step: int = 1, first_seq: int = 1) -> list[dict[str, Any]]:
    return [
        {
            "seq": first_seq + i,
            "type": "text_delta",
            "ts": "2026-11-29T16:02:03Z",
            "step": step,
            "data": {"step": step, "offset": i * len(text), "text": text},
        }
        for i in range(count)
    ]


def progress(count: int, first_seq: int = 1) -> list[dict[str, Any]]:
    return [
        {"seq": first_seq + i, "type": "progress", "ts": "2026-11-29T16:02:03Z", "data": {}}
        for i in range(count)
    ]


def run_page(open_page: OpenPage, run: FakeRun, after: int = 0, answer: str = ">") -> Page:
    content = RUN.replace("{after}", str(after)).replace("{answer}", answer)
    return open_page(content, {"/ws/runs/r1/": run.connect})


def rows(page: Page) -> list[str]:
    return page.locator("[data-event-list] > li").all_inner_texts()


def test_c4_text_is_there_exactly_once_after_ten_cuts_and_repeats(open_page: OpenPage) -> None:
    dice = random.Random(4)
    events = deltas(200)

    def cut_short(socket: WebSocketRoute, after: int, connection: int) -> None:
        run.hello(socket)
        # What was sent before may come again, as from a replay that overlaps with live delivery.
        first = max(1, after + 1 - dice.randint(0, 30))
        last = len(events) if connection > 10 else min(len(events) - 1, after + dice.randint(0, 25))
        run.send(socket, first, last)
        run.send(socket, first, last)
        if connection <= 10:
            socket.close(code=4408 if connection % 3 == 0 else 1012)

    run = FakeRun(events, cut_short)
    page = run_page(open_page, run)

    expect(page.locator("[data-answer-text]")).to_have_text("ha" * 200, timeout=30_000)
    assert len(run.asked) == 11
    assert run.asked == sorted(run.asked)
    assert page.faults == []  # type: ignore[attr-defined]


def test_equal_neighbouring_events_are_both_kept(open_page: OpenPage) -> None:
    page = run_page(open_page, FakeRun(progress(3)))

    expect(page.locator("[data-event-list] > li")).to_have_count(3)
    assert rows(page) == ["row 1", "row 2", "row 3"]
    expect(page.locator("[data-event-total]")).to_have_text("3")


def test_a_hole_makes_it_ask_again_from_the_last_whole_event(open_page: OpenPage) -> None:
    def lose_one(socket: WebSocketRoute, after: int, connection: int) -> None:
        run.hello(socket)
        if connection == 1:
            run.send(socket, 1, 2)
            run.send(socket, 4, 5)
        else:
            run.send(socket, after + 1, 5)

    run = FakeRun(progress(5), lose_one)
    page = run_page(open_page, run)

    expect(page.locator("[data-event-list] > li")).to_have_count(5)
    assert rows(page) == [f"row {n}" for n in range(1, 6)]
    assert run.asked == [0, 2]


def test_it_goes_on_from_what_the_server_rendered(open_page: OpenPage) -> None:
    run = FakeRun(deltas(4, "é😀"))

    # Two deltas are in the page already: four code points, whatever the browser's strings count.
    page = run_page(open_page, run, after=2, answer=' data-step="1" data-offset="4">é😀é😀')

    expect(page.locator("[data-answer-text]")).to_have_text("é😀" * 4)
    assert run.asked == [2]


def test_text_of_a_new_step_replaces_the_one_before(open_page: OpenPage) -> None:
    events = deltas(2, "old", step=1) + deltas(2, "new", step=2, first_seq=3)

    page = run_page(open_page, FakeRun(events))

    expect(page.locator("[data-answer-text]")).to_have_text("newnew")
    expect(page.locator("[data-answer-text]")).to_have_attribute("aria-busy", "true")


def test_the_cursor_stops_when_the_run_stops(open_page: OpenPage) -> None:
    stop = {"seq": 3, "type": "run_status", "data": {"from": "running", "to": "interrupted"}}

    page = run_page(open_page, FakeRun([*deltas(2), stop]))

    expect(page.locator("[data-answer-text]")).to_have_text("haha")
    expect(page.locator("[data-answer-text]")).to_have_attribute("aria-busy", "false")


def test_an_older_rendering_of_the_answer_does_not_take_text_back(open_page: OpenPage) -> None:
    run = FakeRun(deltas(3))
    page = run_page(open_page, run)
    expect(page.locator("[data-answer-text]")).to_have_text("hahaha")

    older = '<p id="mark">new</p><div data-answer-text data-step="1" data-offset="2">ha</div>'
    html = f'<section id="answer" data-answer>{older}</section>'
    run.sockets[-1].send(json.dumps({"type": "fragment", "target": "answer", "html": html}))

    expect(page.locator("#mark")).to_have_text("new")
    expect(page.locator("[data-answer-text]")).to_have_text("hahaha")


def test_model_text_is_text_never_markup(open_page: OpenPage) -> None:
    page = run_page(open_page, FakeRun(deltas(1, "<img src=x onerror=alert(1)>")))

    expect(page.locator("[data-answer-text]")).to_have_text("<img src=x onerror=alert(1)>")
    assert page.locator("[data-answer-text] img").count() == 0


def test_the_page_keeps_five_hundred_rows(open_page: OpenPage) -> None:
    page = run_page(open_page, FakeRun(progress(620)))

    expect(page.locator("[data-event-list] > li").last).to_have_text("row 620")
    assert page.locator("[data-event-list] > li").count() == 500


def test_it_follows_the_end_only_while_the_reader_is_there(open_page: OpenPage) -> None:
    run = FakeRun(progress(100))
    page = run_page(open_page, run)
    expect(page.locator("[data-event-list] > li")).to_have_count(100)
    scroller = page.locator("[data-event-scroll]")
    jump = page.locator("[data-jump-latest]")
    assert scroller.evaluate("box => box.scrollHeight - box.scrollTop - box.clientHeight") < 2
    expect(jump).to_be_hidden()

    scroller.evaluate("box => box.scrollTo(0, 100)")
    run.events += progress(5, first_seq=101)
    run.send(run.sockets[-1], 101, 105)

    expect(jump).to_be_visible()
    assert scroller.evaluate("box => box.scrollTop") == 100
    jump.click()
    expect(jump).to_be_hidden()
    assert scroller.evaluate("box => box.scrollHeight - box.scrollTop - box.clientHeight") < 2


def test_a_fragment_keeps_focus_and_open_details(open_page: OpenPage) -> None:
    run = FakeRun([])
    page = run_page(open_page, run)
    page.wait_for_function("document.querySelector('[data-live-dot]').dataset.state === 'live'")
    page.locator("#more summary").click()
    page.locator("#stop").focus()

    fresh = (
        '<div id="run-header"><details id="more"><summary>More</summary><p>is</p></details>'
        '<button id="stop">Stop now</button></div>'
    )
    run.sockets[-1].send(json.dumps({"type": "fragment", "target": "run-header", "html": fresh}))

    expect(page.locator("#stop")).to_have_text("Stop now")
    expect(page.locator("#stop")).to_be_focused()
    expect(page.locator("#more p")).to_be_visible()


def test_only_live_rows_are_spoken_not_replayed_ones(open_page: OpenPage) -> None:
    run = FakeRun(progress(2))
    page = run_page(open_page, run)
    expect(page.locator("[data-event-list] > li")).to_have_count(2)
    expect(page.locator("#announce-status")).to_have_text("")

    run.sockets[-1].send(json.dumps(frame(progress(1, first_seq=3)[0])))

    expect(page.locator("#announce-status")).to_have_text("said 3")


def test_a_reader_who_is_offline_for_long_is_told_and_then_caught_up(open_page: OpenPage) -> None:
    ready = {"now": False}

    def script(socket: WebSocketRoute, after: int, connection: int) -> None:
        if connection > 1 and ready["now"]:
            run.send_rest(socket, after, connection)
        elif connection > 1:
            socket.close(code=1012)
        else:
            run.hello(socket)
            run.send(socket, 1, 2)
            socket.close(code=1012)

    run = FakeRun(progress(44), script)
    page = run_page(open_page, run)
    banner = page.locator("[data-connection]")
    expect(banner).to_be_visible()
    expect(banner).to_contain_text("showing events up to")
    expect(page.locator("[data-live-dot]")).to_have_text("Offline")

    ready["now"] = True
    page.locator("[data-connection-retry]").click()

    expect(banner).to_be_hidden()
    expect(page.locator("#announce-status")).to_have_text("Caught up, 42 events")
    expect(page.locator("[data-event-list] > li")).to_have_count(44)


@pytest.mark.parametrize(
    ("code", "words"),
    [(4401, "You are signed out"), (4403, "Live updates have ended"), (4404, "not there any more")],
)
def test_a_final_close_code_ends_it_and_says_why(
    open_page: OpenPage, code: int, words: str
) -> None:
    def refuse(socket: WebSocketRoute, after: int, connection: int) -> None:
        socket.close(code=code)

    run = FakeRun([], refuse)
    page = run_page(open_page, run)

    expect(page.locator("[data-connection]")).to_contain_text(words)
    expect(page.locator("[data-connection-retry]")).to_be_hidden()
    assert page.locator("[data-connection-login]").is_visible() == (code == 4401)
    assert run.asked == [0]


def test_a_silent_connection_is_given_up_after_two_missed_heartbeats(open_page: OpenPage) -> None:
    run = FakeRun(progress(1))
    content = RUN.replace("{after}", "0").replace("{answer}", ">")
    page = open_page(content, {"/ws/runs/r1/": run.connect}, frozen_clock=True)

    expect(page.locator("[data-event-list] > li")).to_have_count(1)
    page.clock.run_for(20_000)
    run.sockets[-1].send('{"type": "heartbeat"}')
    page.wait_for_timeout(50)
    page.clock.run_for(20_000)
    assert run.asked == [0]

    page.clock.run_for(15_000)

    page.wait_for_function("true")
    assert run.asked == [0, 1]

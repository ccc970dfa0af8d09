"""The tree of a trace by keyboard and mouse: folding, levels, and the span beside it."""

from __future__ import annotations

import pytest
from playwright.sync_api import Route, expect

from tests.ui.conftest import OpenPage

pytestmark = pytest.mark.browser

ROW = """<li data-key-row data-depth="{level}" data-level="{level}" data-span="{name}"><span class="name">
{twist}<a class="label" data-key-open data-peek="/peek/" href="?span={name}">{name}</a></span></li>"""
TWIST = '<button type="button" class="twist" aria-expanded="true" aria-label="below">v</button>'
ROWS = [("run", 0), ("ask", 1), ("read", 2), ("write", 2), ("sandbox", 3), ("answer", 1)]


def tree() -> str:
    parents = {"run", "ask", "write"}
    rows = [
        ROW.format(name=name, level=level, twist=TWIST if name in parents else "")
        for name, level in ROWS
    ]
    return (
        '<h1>Trace</h1><button type="button" data-trace-level="1">Collapse all</button>'
        '<a href="#errors" data-trace-errors>Errors</a>'
        f'<ul id="span-tree" data-key-list data-trace-tree>{"".join(rows)}</ul>'
        '<section id="span">nothing</section>'
    )


def test_keys_fold_and_a_click_shows_the_span_beside_the_tree(open_page: OpenPage) -> None:
    def peek(route: Route) -> None:
        assert route.request.headers["hx-request"] == "true"
        route.fulfill(body='<section id="span">the panel</section>', content_type="text/html")

    page = open_page(tree(), answers={"/peek/": peek})
    page.wait_for_load_state("load")
    rows = page.locator("#span-tree > li:visible a")

    def shown() -> list[str]:
        return rows.all_inner_texts()

    everything = [name for name, _ in ROWS]
    page.get_by_role("link", name="run", exact=True).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowLeft")
    assert shown() == ["run", "ask", "answer"]
    expect(page.locator('[data-span="ask"] .twist')).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("link", name="answer")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("link", name="run", exact=True)).to_be_focused()
    page.keyboard.press("e")
    assert shown() == everything
    page.keyboard.press("2")
    assert shown() == ["run", "ask", "read", "write", "answer"]
    page.keyboard.press("w")
    assert shown() == ["run"]
    page.keyboard.press("e")
    page.get_by_role("button", name="Collapse all").click()
    assert shown() == ["run", "ask", "answer"]
    page.locator('[data-span="ask"] .twist').click()
    assert shown() == ["run", "ask", "read", "write", "answer"]

    page.get_by_role("link", name="write").click()
    expect(page.locator("#span")).to_have_text("the panel")
    expect(page.locator('[data-span="write"]')).to_have_attribute("aria-current", "true")
    assert page.url.endswith("?span=write")
    page.keyboard.press("f")
    page.wait_for_url("**#errors")
    assert page.faults == []  # type: ignore[attr-defined]

"""Chromium as one of the demo's people: pages that note every fault, and what must hold on each page."""

from __future__ import annotations

import re
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    Request,
    expect,
)

from runtime_core.demo import PASSWORD
from tests.config.stack_process import BASE
from tests.e2e.product import Product

FAILURES = BASE / "test-results"
TIMEOUT_MS = 15_000
RUN_PAGE = re.compile(r"/runs/[0-9a-f-]{36}/$")
_axe: Any = Axe()
# Two cores may be shared with other work; what passes does so in a fraction of this.
expect.set_options(timeout=TIMEOUT_MS)


class Person:
    """A browser in which somebody is signed in, or nobody; faults of all its pages are in `faults`."""

    def __init__(self, product: Product, browser: Browser, name: str = "", **options: Any) -> None:
        self.product = product
        self.name = name
        self.faults: list[str] = []
        self.requests: list[str] = []
        self.context: BrowserContext = browser.new_context(base_url=product.origin, **options)
        self.context.set_default_timeout(TIMEOUT_MS)
        self.context.on("console", self._heard)
        self.context.on("weberror", lambda error: self.faults.append(f"page error: {error.error}"))
        self.context.on("dialog", self._asked)
        self.context.on("request", self._asked_for)
        if name:
            self.take_session(product.cookies(name))

    def take_session(self, cookies: dict[str, str]) -> None:
        """Be signed in by these cookies."""
        made = [
            {"name": key, "value": value, "url": self.product.origin}
            for key, value in cookies.items()
        ]
        self.context.add_cookies(made)  # type: ignore[arg-type]

    def open(self, path: str) -> Page:
        """A page of its own at this address."""
        page = self.context.new_page()
        page.goto(path)
        return page

    def log_in(self, name: str) -> Page:
        """Sign in by the form, as people do."""
        page = self.open("/login/")
        page.get_by_label("User name").fill(name)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/")
        return page

    def start_run(self, page: Page, agent: str, text: str) -> str:
        """Start a run from the form; its id. The page is the run's page then."""
        page.goto("/runs/new/")
        page.get_by_label("Agent").select_option(label=agent)
        page.get_by_label("Task").fill(text)
        page.get_by_role("button", name="Start run").click()
        page.wait_for_url(RUN_PAGE)
        return page.url.rstrip("/").rsplit("/", 1)[-1]

    def check(self) -> None:
        """Fail if a page of theirs had any fault so far."""
        assert self.faults == []

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(
                f"{message.type} on {message.page and message.page.url}: {message.text}"
            )

    def _asked(self, dialog: Dialog) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _asked_for(self, request: Request) -> None:
        self.requests.append(request.url)


def photograph(somebody: Person) -> None:
    """Keep what all pages show now, for whoever looks at the failure."""
    FAILURES.mkdir(exist_ok=True)
    for number, page in enumerate(somebody.context.pages):
        place = re.sub(r"\W+", "-", page.url.removeprefix(somebody.product.origin)).strip("-")
        page.screenshot(
            path=FAILURES / f"{somebody.name or 'nobody'}-{number}-{place[:60]}.png", full_page=True
        )


def violations(page: Page, *, only: str = "", without: str = "") -> list[str]:
    """What axe-core finds wrong, one line each; by one rule alone, or without one that was tried."""
    if not page.evaluate("Boolean(window.axe)"):
        page.evaluate(_axe.axe_script)
    options: dict[str, Any] = {"resultTypes": ["violations"]}
    if only:
        options["runOnly"] = {"type": "rule", "values": [only]}
    if without:
        options["rules"] = {without: {"enabled": False}}
    return page.evaluate(
        """async (options) => (await axe.run(document, options)).violations.map((one) =>
            `${one.id}: ${one.help}: ${one.nodes.slice(0, 4).map((node) => node.target).join("  ")}`)""",
        options,
    )


def sideways(page: Page) -> list[str]:
    """The elements that make the page wider than its window; nothing if it fits."""
    return page.evaluate(
        """() => {
            const width = document.documentElement.clientWidth;
            if (document.documentElement.scrollWidth <= width) return [];
            const wide = [...document.querySelectorAll("body *")]
                .filter((node) => node.getBoundingClientRect().right > width + 1);
            return ["it is too wide", ...wide.slice(0, 5).map((node) => node.outerHTML.slice(0, 120))];
        }"""
    )

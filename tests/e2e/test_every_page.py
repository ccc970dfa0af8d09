"""Every page in every state: accessible in light and dark, quiet, held by its policy, and as wide as its window."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser, Page, Response, expect

from tests.e2e.browsing import Person, sideways, violations
from tests.e2e.conftest import People
from tests.e2e.product import Product

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]

WIDE = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
NARROW = {"width": 320, "height": 700}


@dataclass
class Scene:
    """Runs and requests in the states that the pages show."""

    product: Product
    runs: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        start = self.product.start_run
        self.runs = {
            "running": start("watcher", "Watch the board"),
            "interrupted": start("notices", "Post two notices on the board by the door"),
            "failed": start("broken", "Try it"),
            "paused": start("talker", "Talk", limits={"max_steps": 3}),
            "cancelled": start("notices", "Post something"),
            "completed": start("refund-desk", "Order A-1002: the armrest is damaged."),
            "question": start("asker", "Ask"),
            "critical": start("eraser", "Make room on the board"),
            "conflict": start("notices", "Two people at once"),
            "long": start(
                "code-fixer", "Mend the failing test. " + "It fails for long words. " * 30
            ),
        }
        self.product.open_interrupt(self.runs["cancelled"])
        self.product.post("operator", f"/runs/{self.runs['cancelled']}/cancel", {})
        self.product.decide(self.product.open_interrupt(self.runs["completed"]))
        for status in ("failed", "paused", "cancelled", "completed"):
            self.product.wait_for_status(self.runs[status], status)

    def run(self, name: str) -> str:
        return f"/runs/{self.runs[name]}/"

    def trace(self, name: str) -> str:
        return f"/traces/{self.runs[name]}/"

    def request(self, name: str) -> str:
        """The page of the run's newest request."""
        run = self.runs[name]
        newest = "SELECT id FROM interrupt WHERE run_id = %s ORDER BY created_at DESC LIMIT 1"
        if self.product.get("operator", f"/runs/{run}")["status"] not in ("completed", "cancelled"):
            self.product.open_interrupt(run)
        return f"/inbox/{self.product.one(newest, run)}/"

    def span(self, name: str) -> str:
        run = self.runs[name]
        query = (
            "SELECT id FROM span WHERE run_id = %s AND kind = 'tool' ORDER BY started_at LIMIT 1"
        )
        return f"/traces/{run}/?span={self.product.one(query, run)}"


Address = Callable[[Scene], str]
# Name, who looks, where, with which status.
PAGES: dict[str, tuple[str, Address, int]] = {
    "home": ("operator", lambda s: "/", 200),
    "home of an approver": ("approver", lambda s: "/", 200),
    "remembered approvals": ("approver", lambda s: "/inbox/remembered/", 200),
    "standing in": ("approver", lambda s: "/inbox/delegations/", 200),
    "saved views": ("approver", lambda s: "/inbox/views/", 200),
    "notifications": ("approver", lambda s: "/notifications/", 200),
    "settings": ("approver", lambda s: "/settings/", 200),
    "notification settings": ("approver", lambda s: "/settings/notifications/", 200),
    "home of a stranger": ("stranger", lambda s: "/", 200),
    "runs": ("operator", lambda s: "/runs/", 200),
    "exports": ("operator", lambda s: "/exports/", 200),
    "runs, none found": ("operator", lambda s: "/runs/?status=timed_out", 200),
    "new run": ("operator", lambda s: "/runs/new/", 200),
    "new run by a viewer": ("viewer", lambda s: "/runs/new/", 403),
    **{f"run, {name}": ("operator", lambda s, name=name: s.run(name), 200)
       for name in ("running", "interrupted", "failed", "paused", "cancelled", "completed", "long")},
    "run, to who may decide": ("approver", lambda s: s.run("interrupted"), 200),
    "cancel": ("operator", lambda s: s.run("running") + "cancel/", 200),
    "pause": ("operator", lambda s: s.run("running") + "pause/", 200),
    "resume": ("operator", lambda s: s.run("paused") + "resume/", 200),
    "retry": ("operator", lambda s: s.run("failed") + "retry/", 200),
    "inbox": ("approver", lambda s: "/inbox/", 200),
    "inbox, decided": ("approver", lambda s: "/inbox/?view=decided", 200),
    "inbox, nothing": ("stranger", lambda s: "/inbox/", 200),
    **{f"request, {name}": ("approver", lambda s, name=name: s.request(name), 200)
       for name in ("interrupted", "long", "question", "critical", "completed", "cancelled")},
    "request, to a viewer": ("viewer", lambda s: s.request("interrupted"), 200),
    "traces": ("operator", lambda s: "/traces/", 200),
    "trace": ("operator", lambda s: s.trace("completed"), 200),
    "trace, going on": ("operator", lambda s: s.trace("running"), 200),
    "trace, failed": ("operator", lambda s: s.trace("failed"), 200),
    "trace, its log": ("operator", lambda s: s.trace("completed") + "?view=log", 200),
    "span": ("operator", lambda s: s.span("completed"), 200),
    "span, alone": ("operator", lambda s: s.span("completed").replace("?span=", "spans/") + "/", 200),
    "audit": ("admin", lambda s: "/audit/", 200),
    "policies": ("admin", lambda s: "/policies/", 200),
    "agents": ("operator", lambda s: "/agents/", 200),
    "system": ("operator", lambda s: "/system/", 200),
    "system, to a viewer": ("viewer", lambda s: "/system/", 403),
    "agents, by an admin": ("admin", lambda s: "/agents/", 200),
    "login": ("", lambda s: "/login/", 200),
    "nothing there": ("operator", lambda s: f"/runs/{uuid.UUID(int=0)}/", 404),
    "no such address": ("operator", lambda s: "/no-such-page/", 404),
}  # fmt: skip


@pytest.fixture(scope="module")
def scene(product: Product) -> Scene:
    return Scene(product)


@pytest.fixture(scope="module")
def seats(product: Product, chromium: Browser) -> dict[str, Person]:
    """One browser for each person: what a page leaves behind is there for the next one."""
    seated: dict[str, Person] = {}

    class Seats(dict[str, Person]):
        def __missing__(self, name: str) -> Person:
            seated[name] = Person(product, chromium, name, reduced_motion="reduce")
            self[name] = seated[name]
            return seated[name]

    return Seats()


@pytest.mark.parametrize("name", PAGES)
def test_it_is_accessible_quiet_and_fits(scene: Scene, seats: dict[str, Person], name: str) -> None:
    who, address, status = PAGES[name]
    somebody = seats[who]
    somebody.faults.clear()
    page = somebody.context.new_page()
    try:
        response = page.goto(address(scene))
        assert response is not None and response.status == status
        expect(page.get_by_role("heading", level=1)).to_have_count(1)
        check_policy(response)
        expect(
            page.locator("body:not([data-signed-in]), [data-live-dot][data-state=live]").first
        ).to_be_visible()
        expected = f"status of {status}" if status != 200 else None
        assert [
            fault for fault in somebody.faults if expected is None or expected not in fault
        ] == []
        check_look(page)
    finally:
        page.close()


def test_a_conflict_and_a_receipt_are_accessible_and_fit(
    scene: Scene, product: Product, people: People
) -> None:
    late = people("approver2", reduced_motion="reduce")
    page = late.open(scene.request("conflict"))
    page.locator("summary", has_text="Edit").first.click()
    page.get_by_label("text").first.fill("My own words for it")
    check_look(page)
    page.set_viewport_size(WIDE)
    product.decide(product.open_interrupt(scene.runs["conflict"]))

    page.get_by_role("button", name="Approve with edits").first.click()
    expect(page.locator(".conflict")).to_be_visible()
    check_look(page)

    page.reload()
    expect(page.locator(".receipt")).to_be_visible()
    check_look(page)


def test_the_inbox_works_on_a_phone(product: Product, people: People, nothing_open: None) -> None:
    run = product.start_run("notices")
    product.open_interrupt(run)
    approver = people("approver", viewport=PHONE, has_touch=True, is_mobile=True)
    page = approver.open("/inbox/")

    page.locator("[data-key-row]").get_by_role("link", name="post_notice").tap()
    page.wait_for_url("**/inbox/*-*/**")
    expect(page.locator("#inbox-list")).to_be_hidden()
    expect(page.locator("#detail")).to_contain_text("The first notice")
    button = page.locator("#detail").get_by_role("button", name="Approve")
    expect(button).to_be_in_viewport()
    box = button.bounding_box()
    assert box is not None and box["height"] >= 44
    button.tap()
    expect(page.locator(".receipt")).to_contain_text("Approved")
    page.get_by_role("link", name="Watch the run").tap()
    expect(page.locator("#run-header")).to_contain_text("notices")
    approver.check()


def check_policy(response: Response) -> None:
    """Nothing inline runs, and nothing comes from elsewhere."""
    policy = response.headers["content-security-policy"]
    assert "default-src 'self'" in policy and "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert response.headers["x-frame-options"] == "DENY"
    assert response.headers["x-content-type-options"] == "nosniff"


def settle(page: Page) -> None:
    """Return when no transition is under way: half-way through one, colours are neither here nor there."""
    page.evaluate(
        "() => Promise.all(document.getAnimations()"
        ".filter(a => a.effect.getComputedTiming().endTime !== Infinity)"
        ".map(a => a.finished.catch(() => null)))"
    )


def check_look(page: Page) -> None:
    """No violation on a desk in light and dark nor on a phone; no sideways scroll."""
    settle(page)
    found: dict[str, list[str]] = {}
    page.emulate_media(color_scheme="light")
    settle(page)
    found["light"] = violations(page)
    page.emulate_media(color_scheme="dark")
    settle(page)
    found["dark"] = violations(page, only="color-contrast")
    page.set_viewport_size(PHONE)
    found["390 px"] = sideways(page)
    found["on a phone"] = violations(page, without="color-contrast")
    page.set_viewport_size(NARROW)
    found["320 px"] = sideways(page)
    page.set_viewport_size(WIDE)
    assert {where: faults for where, faults in found.items() if faults} == {}

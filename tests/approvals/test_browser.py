"""The inbox in Chromium over a real web process: live rows, keys, conflicts, no script needed."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from django.test import Client
from playwright.sync_api import Browser, Page, expect, sync_playwright

from approvals.deciding.changing import propose
from approvals.deciding.commands import Opinion, decide
from approvals.models import Decision
from runtime_core import clock
from runtime_core.events.publish import announce
from runtime_core.models import Interrupt
from runtime_core.values import Actor
from tests.approvals.world import World, as_actor
from tests.conftest import environment
from tests.live.web import Web

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]

REFUND = {"order_id": "A-1001", "amount": "20.00", "reason": "Broken on arrival."}
OpenPage = Callable[..., Page]


@pytest.fixture(scope="module")
def web(django_db_setup: None) -> Iterator[Web]:
    web = Web(environment())
    yield web
    web.stop()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    installed = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=installed, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def world(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> World:
    # Playwright's loop runs in this thread, which Django takes for asynchronous code.
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
    return World()


@pytest.fixture
def open_page(chromium: Browser, web: Web, world: World) -> Iterator[OpenPage]:
    """Opens an address as somebody; whatever the browser complains about fails the test."""
    contexts: list[Any] = []
    faults: list[str] = []

    def open_(user: Any, path: str, **options: Any) -> Page:
        context = chromium.new_context(base_url=web.origin, **options)
        contexts.append(context)
        context.add_cookies([session_of(user, web.origin)])
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("dialog", lambda dialog: faults.append(dialog.message))
        page.on(
            "console",
            lambda said: faults.append(said.text) if "Content Security" in said.text else None,
        )
        page.goto(path)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert faults == []


def session_of(user: Any, origin: str) -> Any:
    client = Client()
    client.force_login(user)
    value = client.cookies[settings.SESSION_COOKIE_NAME].value
    return {"name": settings.SESSION_COOKIE_NAME, "value": value, "url": origin}


def tell(interrupt: Interrupt) -> None:
    """What the runtime does after its commit."""
    announce(interrupt.run_id, 1, interrupt.project_id, inbox=True)


def check_accessible(page: Page) -> None:
    """No violation; the page must be open with `bypass_csp`: axe measures with inline styles."""
    found = Axe().run(page)
    told = [(one["id"], one["nodes"][0]["html"]) for one in found.response["violations"]]
    assert not told, json.dumps(told, indent=1)


def test_a_new_request_appears_without_a_reload(world: World, open_page: OpenPage) -> None:
    page = open_page(world.approver, "/inbox/")
    expect(page.get_by_text("Nothing needs you")).to_be_visible()
    page.evaluate("window.sameDocument = true")

    interrupt = world.ask()
    tell(interrupt)

    expect(page.locator(f'[data-interrupt-id="{interrupt.id}"]')).to_be_visible()
    expect(page).to_have_title("(1) Inbox · Interlock")
    assert page.evaluate("window.sameDocument")


def test_rows_do_not_move_while_somebody_reads(world: World, open_page: OpenPage) -> None:
    first = world.ask()
    page = open_page(world.approver, "/inbox/")
    expect(page.locator("[data-live-dot]")).to_have_attribute("data-state", "live")

    second = world.ask()
    tell(second)

    expect(page.get_by_role("button", name="1 new, show")).to_be_visible()
    assert page.locator(f'[data-interrupt-id="{second.id}"]').count() == 0
    page.get_by_role("button", name="1 new, show").click()
    expect(page.locator(f'[data-interrupt-id="{second.id}"]')).to_be_visible()
    expect(page.locator(f'[data-interrupt-id="{first.id}"]')).to_be_visible()


def test_a_row_that_somebody_else_decided_says_so(world: World, open_page: OpenPage) -> None:
    interrupt = world.ask()
    page = open_page(world.approver, "/inbox/")
    row = page.locator(f'[data-interrupt-id="{interrupt.id}"]')
    expect(page.locator("[data-live-dot]")).to_have_attribute("data-state", "live")

    opinion = Opinion("approve", 1, interrupt.digest)
    decide(Actor(world.approver2.pk, "approver2"), interrupt.id, opinion)

    expect(row.get_by_text("No longer open")).to_be_visible()
    expect(page).to_have_title("Inbox · Interlock")


def test_a_request_is_found_read_and_approved_by_keyboard_alone(
    world: World, open_page: OpenPage
) -> None:
    world.ask("run_command", {"argv": ["pytest"]})
    wanted = world.ask("run_command", {"argv": ["ls", "-la"]})
    page = open_page(world.approver, "/inbox/")

    page.locator("[data-key-open]").first.focus()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/inbox/{wanted.id}/**")
    expect(page.locator("#request-title")).to_be_focused()
    page.keyboard.press("a")

    expect(page.locator(".receipt")).to_contain_text("by approver")
    assert Decision.objects.get().interrupt_id == wanted.id


def test_ten_requests_are_worked_through_by_keys_alone(world: World, open_page: OpenPage) -> None:
    run = world.run()
    world.policy(undo_seconds=60)
    calls = [("run_command", {"argv": ["step", str(number)]}) for number in range(9)]
    asked = [world.ask(*call, run=run, ruled=True) for call in calls]
    asked.append(world.ask("issue_refund", REFUND, risk="high", run=run, ruled=True))
    page = open_page(world.approver, "/inbox/")
    page.evaluate("window.sameDocument = true")
    page.locator("[data-key-open]").first.focus()

    for number, one in enumerate(asked):
        row = page.locator(f"#row-{one.id}")
        expect(row.locator("[data-key-open]")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("#request-title")).to_be_focused()
        expect(page.locator("#detail")).to_have_attribute("data-interrupt", str(one.id))
        match number:
            case 2:
                page.keyboard.press("d")
                page.keyboard.type("Not this one.")
                page.keyboard.press("Control+Enter")
            case 3:
                page.keyboard.press("h")
                expect(page.get_by_role("button", name="1 hour")).to_be_focused()
                page.keyboard.press("Shift+Tab")
            case _:
                page.keyboard.press("a")
                if one.risk == "high":
                    expect(page.locator('[data-key="a"]')).to_be_focused()
                    page.keyboard.press("Enter")
        if number != 3:
            expect(page.locator(".receipt")).to_contain_text("by approver")
            expect(page.locator("#request-title")).to_be_focused()
            expect(row).to_contain_text("No longer open")
        page.keyboard.press("j" if number < 9 else "u")

    expect(page.locator("#announce-status")).to_have_text(
        "Approved: issue_refund. 1 more waits for you."
    )
    assert page.evaluate("window.sameDocument")
    assert page.locator("[data-key-row]").count() == 10
    assert Interrupt.objects.get(status="open").id == asked[3].id
    assert Decision.objects.filter(action="reject").count() == 1

    # Each row is a receipt where it stood, with its own way back.
    page.locator(f"#row-{asked[0].id}").get_by_role("button", name="Undo").press("Enter")
    expect(page.locator("#request-title")).to_be_focused()
    expect(page.locator("#detail")).to_have_attribute("data-interrupt", str(asked[0].id))
    expect(page.locator(f"#row-{asked[0].id} [data-gone-note]")).to_be_empty()
    assert Interrupt.objects.filter(status="open").count() == 2


def test_a_key_opens_the_rejection_and_puts_the_cursor_in_it(
    world: World, open_page: OpenPage
) -> None:
    interrupt = world.ask()
    page = open_page(world.approver, f"/inbox/{interrupt.id}/")

    page.locator("#request-title").focus()
    page.keyboard.press("d")
    expect(page.locator("#reason")).to_be_focused()
    page.keyboard.type("a reason with the letter a")
    page.keyboard.press("Control+Enter")

    expect(page.locator(".receipt")).to_contain_text("a reason with the letter a")
    assert Decision.objects.get().action == "reject"


def test_at_high_risk_the_key_only_moves_to_the_button(world: World, open_page: OpenPage) -> None:
    interrupt = world.ask("issue_refund", REFUND, risk="high")
    page = open_page(world.approver, f"/inbox/{interrupt.id}/")

    page.locator("#request-title").focus()
    page.keyboard.press("a")

    expect(page.locator('[data-key="a"]')).to_be_focused()
    assert not Decision.objects.exists()


def test_an_error_keeps_the_form_open_and_a_conflict_keeps_the_edits(
    world: World, open_page: OpenPage
) -> None:
    interrupt = world.ask("issue_refund", REFUND, risk="high")
    page = open_page(world.approver, f"/inbox/{interrupt.id}/")
    page.get_by_text("Edit", exact=False).first.click()
    amount = page.locator('[name="arg.amount"]')

    amount.fill("-5")
    page.get_by_role("button", name="Approve with edits").first.click()
    expect(page.locator(".error-summary")).to_be_focused()
    expect(amount).to_have_value("-5")

    amount.fill("5.00")
    Interrupt.objects.filter(id=interrupt.id).update(version=2)
    page.get_by_role("button", name="Approve with edits").first.click()
    expect(page.locator("#conflict-title")).to_be_focused()
    expect(page.locator("ins")).to_have_text("5.00")

    page.get_by_text("Apply my edits on version 2").click()
    page.get_by_role("button", name="Approve my edits on version 2").click()
    expect(page.locator(".receipt")).to_be_visible()
    assert '"amount":"5.00"' in Interrupt.objects.get(id=interrupt.id).tool_call.args_text


def test_two_people_at_one_request_see_each_other(world: World, open_page: OpenPage) -> None:
    world.policy()
    interrupt = world.ask("issue_refund", REFUND, risk="medium", ruled=True)
    first = open_page(world.approver, f"/inbox/{interrupt.id}/")
    second = open_page(world.approver2, "/inbox/")
    row = second.locator(f"#row-{interrupt.id} [data-presence]")
    expect(row).to_have_text("approver is looking")
    expect(first.locator("[data-presence-here]")).to_be_hidden()

    second.locator(f"#row-{interrupt.id} [data-key-open]").click()
    expect(first.locator("[data-presence-here] strong")).to_have_text("approver2 is looking")
    expect(first.locator("#announce-status")).to_have_text("approver2 is looking")
    second.locator("summary", has_text="Edit").first.click()
    expect(first.locator("[data-presence-here] strong")).to_have_text("approver2 is editing")
    second.locator('[name="arg.amount"]').fill("5.00")

    first.locator('[data-key="a"]').click()
    expect(first.locator(".receipt")).to_be_visible()
    expect(first.locator("#announce-status")).to_have_text(
        "Approved: issue_refund. Nothing more waits for you."
    )
    second.get_by_role("button", name="Approve with edits").first.click()
    expect(second.locator("#conflict-title")).to_be_focused()
    expect(second.locator(".conflict")).to_contain_text("approver decided this")
    expect(second.locator("#my-edits")).to_contain_text("5.00")


def test_who_left_a_request_open_is_seen_as_idle(world: World, open_page: OpenPage) -> None:
    world.policy()
    interrupt = world.ask("issue_refund", REFUND, risk="medium", ruled=True)
    away = open_page(world.approver, "/inbox/")
    away.clock.install()
    away.goto(away.url.replace("/inbox/", f"/inbox/{interrupt.id}/"))
    other = open_page(world.approver2, f"/inbox/{interrupt.id}/")
    here = other.locator("[data-presence-here] strong")
    expect(here).to_have_text("approver is looking")

    away.clock.fast_forward("10:30")
    expect(here).to_have_text("approver has it open and does nothing")
    away.keyboard.press("Shift")
    expect(here).to_have_text("approver is looking")


def test_a_conflict_is_accessible(world: World, open_page: OpenPage) -> None:
    interrupt = world.ask("issue_refund", REFUND, risk="high")
    page = open_page(world.approver, f"/inbox/{interrupt.id}/", bypass_csp=True)
    page.get_by_text("Edit", exact=False).first.click()
    page.locator('[name="arg.amount"]').fill("5.00")
    Interrupt.objects.filter(id=interrupt.id).update(version=2)

    page.get_by_role("button", name="Approve with edits").first.click()

    expect(page.locator("#conflict-title")).to_be_focused()
    check_accessible(page)


def test_a_right_lost_meanwhile_is_told_in_place(world: World, open_page: OpenPage) -> None:
    interrupt = world.ask()
    page = open_page(world.approver, f"/inbox/{interrupt.id}/")
    world.approver.memberships.update(role="viewer")

    page.locator('[data-key="a"]').click()

    expect(page.locator("#page-errors")).to_contain_text("you may not decide on this")


def test_everything_works_without_scripts(world: World, open_page: OpenPage) -> None:
    interrupt = world.ask("issue_refund", REFUND, risk="high")
    page = open_page(world.approver, "/inbox/", java_script_enabled=False)

    page.get_by_role("link", name="issue_refund").click()
    page.locator("summary", has_text="Edit").first.click()
    page.locator('[name="arg.amount"]').fill("7.50")
    page.get_by_role("button", name="Approve with edits").first.click()

    expect(page.locator(".receipt")).to_contain_text("Approved with edits")
    assert '"amount":"7.50"' in Interrupt.objects.get(id=interrupt.id).tool_call.args_text


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_pages_are_accessible_and_fit(
    world: World, open_page: OpenPage, scheme: str, width: int
) -> None:
    long = {"argv": ["sh", "-c", "a" * 300 + "\u202e" + " " * 50 + "x"]}
    critical = world.ask("run_command", long, risk="critical")
    question = world.ask(
        "ask_human", {"question": "Which?", "choices": ["one", "two"]}, kind="question", risk="low"
    )
    decided = world.ask()
    opinion = Opinion("reject", 1, decided.digest, reason="Not needed.")
    decide(Actor(world.approver2.pk, "approver2"), decided.id, opinion)
    options = {
        "color_scheme": scheme,
        "viewport": {"width": width, "height": 850},
        "bypass_csp": True,
    }
    page = open_page(world.approver, "/inbox/", **options)

    paths = ["/inbox/", *(f"/inbox/{one.id}/" for one in (critical, question, decided))]
    for path in paths:
        page.goto(path)
        check_accessible(page)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 320)])
def test_what_is_seldom_seen_is_accessible_and_fits_too(
    world: World, open_page: OpenPage, scheme: str, width: int
) -> None:
    requests = unusual(world)
    size = {"width": width, "height": 850}
    page = open_page(world.approver, "/inbox/", color_scheme=scheme, viewport=size, bypass_csp=True)

    for path in (f"{requests[0].id}/policy/", *(f"{one.id}/" for one in requests)):
        page.goto(f"/inbox/{path}")
        for closed in page.locator("details.past > summary, details.override > summary").all():
            closed.click()
        check_accessible(page)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path


def unusual(world: World) -> tuple[Interrupt, Interrupt, Interrupt]:
    """A critical request with a proposal and this person's vote, one that they can still take back,
    and one of what has changed. This person is a superuser, to see all there is.
    """
    world.approver.is_superuser = True
    world.approver.save()
    me, other = (as_actor(one) for one in (world.approver, world.approver2))
    voted = world.ask("issue_refund", REFUND, risk="critical", ruled=True)
    less = Opinion("edit", 1, voted.digest, {**REFUND, "amount": "5.00"}, reason="Half is enough.")
    now = propose(other, voted.id, less)
    decide(me, voted.id, Opinion("approve", 2, now.digest))
    undoable = world.ask(ruled=True)
    decide(me, undoable.id, Opinion("approve", 1, undoable.digest), undoable=True)
    later = clock.now() + dt.timedelta(hours=1)
    Interrupt.objects.filter(id=undoable.id).update(undo_until=later)
    drifted = world.ask(kind="drift", reason="The agent's definition changed after it was asked.")
    changes = [{"what": "agent.instructions", "before": "Pay.\nOften.", "after": "Pay.\nNever."}]
    drifted.detail = {"changes": changes}
    drifted.save()
    return voted, undoable, drifted


def test_h5_markup_in_a_request_does_nothing_in_a_browser(
    world: World, open_page: OpenPage
) -> None:
    markup = [
        "<img src=x onerror=alert(1)>",
        "</script><script>alert(1)</script>",
        '<div hx-post="/inbox/" hx-trigger="load">',
        '"><svg/onload=alert(1)>',
    ]
    run = world.run(title="".join(markup)[:120])
    interrupt = world.ask("run_command", {"argv": markup}, run=run, reason=markup[0])
    requested: list[str] = []
    page = open_page(world.approver, f"/inbox/{interrupt.id}/")
    page.on("request", lambda request: requested.append(request.url))

    page.reload(wait_until="networkidle")

    assert (
        page.locator("main img, main svg[onload], main [hx-trigger=load], main script").count() == 0
    )
    assert not [url for url in requested if url.endswith("/x")]

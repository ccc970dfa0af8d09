"""The main job in the browser: start, watch, be asked, decide, watch it end, look back at it."""

from __future__ import annotations

import subprocess

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.browsing import RUN_PAGE, Person
from tests.e2e.conftest import People
from tests.e2e.product import Product

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]

TASK = "The slugify package has a failing test. Find out why and mend it."
BREAKS_MORE = 'def slugify(title: str, separator: str = "-") -> str:\n    return "always this"\n'
REJECTED = "Keep the old function and mend only the accents."
BEFORE = "The workspace as it was given"


def test_by_mouse(product: Product, people: People, nothing_open: None) -> None:
    operator, approver = people(), people("approver")
    page = operator.log_in("operator")
    inbox = approver.open("/inbox/")
    expect(inbox).to_have_title("Inbox · Interlock")
    never_reloaded(inbox)

    run = operator.start_run(page, "code-fixer", TASK)
    never_reloaded(page)
    expect(page.locator("[data-event-list]")).to_contain_text("list_files succeeded")
    expect(status_of(page)).to_have_text("Waiting for approval")
    expect(page.locator("#asks")).to_contain_text("It wants to use write_file")

    expect(inbox).to_have_title("(1) Inbox · Interlock")
    expect(inbox.locator("nav [data-inbox-count]")).to_have_text("1")
    row = inbox.locator("#inbox-list [data-key-row]", has_text="write_file")
    expect(row).to_contain_text("code-fixer for operator")
    still_the_same_document(inbox)
    row.get_by_role("link", name="write_file").click()

    detail = inbox.locator("#detail")
    expect(detail.get_by_role("heading", level=1)).to_have_text(
        "code-fixer wants to run write_file"
    )
    expect(detail).to_contain_text("medium risk")
    expect(detail).to_contain_text("Slugify", ignore_case=True)
    expect(detail.locator(".facts")).to_contain_text("code-fixer for operator in Demo")
    expect(detail).to_contain_text("wants a person to decide")
    diff = detail.get_by_role("group", name="Change to the file")
    expect(diff).to_contain_text("@@ -1,6 +1,12 @@")
    expect(
        diff.locator("del", has_text='return title.lower().replace(" ", separator)')
    ).to_have_count(1)
    expect(
        diff.locator("ins", has_text="return separator.join(_WORD.findall(folded.lower()))")
    ).to_have_count(1)
    detail.get_by_role("button", name="Approve").click()
    expect(inbox.locator(".receipt")).to_contain_text("by approver")

    expect(status_of(page)).to_have_text("Completed")
    expect(page.locator("#answer")).to_contain_text(
        "Done. The failing tests pass and the change is committed."
    )
    expect(page.get_by_role("heading", name="Answer", exact=True)).to_be_visible()
    expect(page.locator("[data-answer-text]")).not_to_have_attribute("aria-busy", "true")
    still_the_same_document(page)
    assert commits(product, run) == ["Make slugs of plain words only", BEFORE]
    assert "folded.lower()" in (product.workspace(run) / "slugify" / "text.py").read_text()

    page.get_by_role("link", name="Open the trace").click()
    tree = page.locator("#span-tree")
    for name in ("read_file", "run_command", "write_file", "git_commit"):
        expect(tree.get_by_role("link", name=name).first).to_be_visible()
    assert tree.locator("li svg.bar, li .bar").count() >= 10
    tree.get_by_role("link", name="git_commit").click()
    expect(page.locator("#span")).to_contain_text("Make slugs of plain words only")

    audit = operator.open(f"/audit/?run={run}")
    entries = audit.locator("tbody tr")
    expect(entries.filter(has_text="run.started")).to_contain_text("operator")
    expect(entries.filter(has_text="interrupt.decided")).to_contain_text("approver")
    expect(entries.filter(has_text="interrupt.viewed")).to_contain_text("approver")
    operator.check()
    approver.check()


def test_by_keyboard_alone(product: Product, people: People, nothing_open: None) -> None:
    operator, approver = people("operator"), people("approver")
    inbox = approver.open("/inbox/")
    page = operator.open("/")
    tab_to(page, page.get_by_role("link", name="New run"))
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/new/")
    tab_to(page, page.get_by_label("Agent"))
    page.keyboard.type("code-fixer")
    tab_to(page, page.get_by_label("Task"))
    page.keyboard.type(TASK)
    page.keyboard.press("Control+Enter")
    page.wait_for_url(RUN_PAGE)
    run = page.url.rstrip("/").rsplit("/", 1)[-1]

    row = inbox.locator("[data-key-open]", has_text="write_file")
    expect(row).to_be_visible()
    tab_to(inbox, row)
    inbox.keyboard.press("k")
    expect(row).to_be_focused()
    inbox.keyboard.press("Enter")
    inbox.wait_for_url("**/inbox/*-*/**")
    tab_to(inbox, inbox.locator("#detail :focus"))
    inbox.keyboard.press("j")
    expect(inbox.locator("[data-key-list] :focus")).to_have_text("write_file")

    press_until(inbox, "a", inbox.locator(".receipt"))
    expect(inbox.locator(".receipt")).to_contain_text("Approved")
    expect(inbox.locator("#request-title")).to_be_focused()
    expect(status_of(page)).to_have_text("Completed")
    assert commits(product, run)[0] == "Make slugs of plain words only"
    assert (
        product.one("SELECT attempts FROM tool_call WHERE run_id = %s AND tool = 'write_file'", run)
        == 1
    )
    operator.check()
    approver.check()


def test_edits_that_break_the_tests_and_a_rejection(
    product: Product, people: People, nothing_open: None
) -> None:
    operator, approver = people("operator"), people("approver")
    page = operator.open("/")
    run = operator.start_run(page, "code-fixer", TASK)
    detail = open_request(approver, product, run)

    detail.locator("summary", has_text="Edit").first.click()
    content = detail.get_by_label("content")
    expect(content).to_contain_text("unicodedata")
    content.fill(BREAKS_MORE)
    detail.get_by_role("button", name="Approve with edits").first.click()
    expect(detail.page.locator(".receipt")).to_contain_text("Approved with edits")

    # What the person wrote is what is there, and the real tests say so.
    expect(page.locator("#answer")).to_contain_text(
        "The tests still fail with the file as it was approved"
    )
    expect(status_of(page)).to_have_text("Waiting for approval")
    assert (product.workspace(run) / "slugify" / "text.py").read_text() == BREAKS_MORE
    second = product.open_interrupt(run)
    assert "FAILED" in product.results(run)[-1]

    detail = open_request(approver, product, run)
    assert second["id"] in detail.page.url
    detail.locator("summary", has_text="Reject").click()
    detail.get_by_role("textbox", name="Reason").fill(REJECTED)
    detail.get_by_role("button", name="Reject", exact=True).click()
    expect(detail.page.locator(".receipt")).to_contain_text(REJECTED)
    expect(status_of(page)).to_have_text("Completed")
    assert commits(product, run) == [BEFORE]
    assert any(REJECTED in body for body in product.told(run))
    assert "edit" in audited(product, run) and "reject" in audited(product, run)
    operator.check()
    approver.check()


def test_a_rejection_needs_a_reason(product: Product, people: People, nothing_open: None) -> None:
    approver = people("approver")
    run = product.start_run("notices")
    detail = open_request(approver, product, run)

    detail.locator("summary", has_text="Reject").click()
    detail.get_by_role("button", name="Reject", exact=True).click()

    expect(detail.page.get_by_role("alert").filter(has_text="Nothing was sent")).to_be_focused()
    assert product.open_interrupt(run)["status"] == "open"
    detail.get_by_role("textbox", name="Reason").fill("Not this one.")
    detail.get_by_role("button", name="Reject", exact=True).click()
    expect(detail.page.locator(".receipt")).to_contain_text("Not this one.")
    # A 422 is an answer that the page shows, and the browser's console names it all the same.
    assert all("422" in fault for fault in approver.faults)


def test_questions_are_answered(product: Product, people: People, nothing_open: None) -> None:
    operator, approver = people("operator"), people("approver")
    page = operator.open("/")
    run = operator.start_run(page, "asker", "Ask me")

    detail = open_request(approver, product, run)
    expect(detail).to_contain_text("Which board should it be?")
    detail.get_by_role("textbox", name="Answer").fill("The north one\nby the door")
    detail.get_by_role("textbox", name="Answer").press("Control+Enter")
    expect(detail.page.locator(".receipt")).to_contain_text("Answered")

    detail = open_request(approver, product, run)
    expect(detail).to_contain_text("Which colour?")
    detail.get_by_label("blue").check()
    detail.get_by_role("button", name="Send answer").click()

    expect(status_of(page)).to_have_text("Completed")
    told = product.told(run)
    assert any("The north one\\nby the door" in body for body in told)
    assert any('"blue"' in body for body in told)
    operator.check()
    approver.check()


def test_a_call_can_be_answered_instead_of_run(
    product: Product, people: People, nothing_open: None
) -> None:
    approver = people("approver")
    run = product.start_run("code-fixer", TASK)
    detail = open_request(approver, product, run)
    file = product.workspace(run) / "slugify" / "text.py"
    before = file.read_text()

    detail.locator("summary", has_text="Answer").click()
    detail.get_by_role("textbox", name="Answer").fill("I have written the file myself; look again.")
    detail.get_by_role("button", name="Answer instead").click()

    expect(detail.page.locator(".receipt")).to_contain_text("Answered")
    product.wait_for_status(run, "completed")
    assert file.read_text() == before
    assert (
        product.one("SELECT attempts FROM tool_call WHERE run_id = %s AND tool = 'write_file'", run)
        == 0
    )
    assert any("I have written the file myself" in body for body in product.told(run))
    approver.check()


@pytest.mark.parametrize("action", ["approve", "reject"])
def test_a_refund_is_paid_once_or_never(
    product: Product, people: People, nothing_open: None, action: str
) -> None:
    operator, approver = people("operator"), people("approver")
    order = {"approve": "A-1001", "reject": "A-1004"}[action]
    page = operator.open("/")
    run = operator.start_run(page, "refund-desk", f"The mug of order {order} arrived broken.")
    detail = open_request(approver, product, run)
    expect(detail).to_contain_text("high risk")
    expect(detail).to_contain_text("It runs once and cannot be repeated safely.")

    if action == "approve":
        # A key alone never decides where the risk is high: it goes to the button.
        tab_to(detail.page, detail.locator(":focus"))
        detail.page.keyboard.press("a")
        expect(detail.get_by_role("button", name="Approve")).to_be_focused()
        assert product.open_interrupt(run)["status"] == "open"
        detail.page.keyboard.press("Enter")
    else:
        detail.locator("summary", has_text="Reject").click()
        detail.get_by_role("button", name="Not needed for this task.").click()
        detail.get_by_role("button", name="Reject", exact=True).click()

    expect(detail.page.locator(".receipt")).to_be_visible()
    expect(status_of(page)).to_have_text("Completed")
    paid = product.rows(
        "SELECT amount FROM shop_refund JOIN shop_order o ON o.id = order_id WHERE o.number = %s",
        order,
    )
    assert [str(row["amount"]) for row in paid] == (["24.90"] if action == "approve" else [])
    operator.check()
    approver.check()


def test_a_critical_call_wants_its_name_typed(
    product: Product, people: People, nothing_open: None
) -> None:
    approver = people("approver")
    run = product.start_run("eraser")
    detail = open_request(approver, product, run)
    as_asked = detail.get_by_role("button", name="Approve as asked")
    approve = as_asked.or_(detail.get_by_role("button", name="Approve")).first
    expect(approve).to_have_attribute("aria-disabled", "true")

    box = detail.get_by_label("Type erase_board to confirm").first
    box.fill("erase")
    box.press("Enter")
    assert product.open_interrupt(run)["status"] == "open"
    box.fill("erase_board")
    approve.click()

    expect(detail.page.get_by_text("1 more person has to")).to_be_visible()
    product.decide(product.open_interrupt(run), by="approver2")
    product.wait_for_status(run, "completed")
    approver.check()


def status_of(page: Page) -> Locator:
    """The badge in the run's header."""
    return page.locator("#run-header .badge").first


def open_request(somebody: Person, product: Product, run: str) -> Locator:
    """The run's open request at this person's browser."""
    page = somebody.open(f"/inbox/{product.open_interrupt(run)['id']}/")
    return page.locator("#detail")


def never_reloaded(page: Page) -> None:
    """Mark the document, to know it again."""
    page.evaluate("window.sameDocument = true")


def still_the_same_document(page: Page) -> None:
    assert page.evaluate("window.sameDocument === true")


def tab_to(page: Page, target: Locator, presses: int = 80) -> None:
    """Go there by Tab, as somebody without a mouse does."""
    for _ in range(presses):
        if target.count() and (target.evaluate("node => node === document.activeElement")):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not come to {target}")


def press_until(page: Page, key: str, there: Locator, presses: int = 8) -> None:
    """Press a key until it has had its effect: each press before scrolls one page of the payload on."""
    for _ in range(presses):
        page.keyboard.press(key)
        try:
            expect(there).to_be_visible(timeout=1_500)
        except AssertionError:
            continue
        return
    raise AssertionError(f"{key} did nothing")


def commits(product: Product, run: str) -> list[str]:
    """Subjects of the workspace's commits, newest first."""
    command = [
        "git",
        "-c",
        "safe.directory=*",
        "-C",
        str(product.workspace(run)),
        "log",
        "--format=%s",
    ]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def audited(product: Product, run: str) -> str:
    """What the audit keeps of the run's decisions."""
    rows = product.rows(
        "SELECT p.body FROM audit_entry e JOIN audit_payload p ON p.entry_id = e.id "
        "WHERE e.run_id = %s AND e.action = 'interrupt.decided'",
        run,
    )
    return " ".join(row["body"] for row in rows)

"""H2, H7: secrets that people, models and tools let slip are nowhere but where the model itself needs them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, WebSocket, expect

from tests.e2e.browsing import Person
from tests.e2e.conftest import People
from tests.e2e.product import Product
from tests.e2e.test_browser_journey import open_request, status_of
from tests.e2e.texts import CANARIES

pytestmark = [pytest.mark.browser, pytest.mark.timeout(150)]


def test_h2_h7_secrets_are_nowhere_but_under_seal(
    product: Product, people: People, nothing_open: None
) -> None:
    operator, approver, viewer = people("operator"), people("approver"), people("viewer")
    frames: list[str | bytes] = []
    page = operator.context.new_page()
    listen(page, frames)
    page.goto("/")
    run = operator.start_run(
        page, "leaky", f"Deploy with {CANARIES['input']} please\nand say when it is done"
    )

    asked = product.open_interrupt(run)
    watching = viewer.context.new_page()
    listen(watching, frames)
    watching.goto(f"/inbox/{asked['id']}/")
    clean("what a viewer sees of a request", watching.content())
    detail = open_request(approver, product, run)
    # Who decides must see what they decide on.
    expect(detail).to_contain_text(CANARIES["args"])
    detail.locator("summary", has_text="Reject").click()
    detail.get_by_role("textbox", name="Reason").fill(f"Use {CANARIES['comment']} instead")
    detail.get_by_role("button", name="Reject", exact=True).click()
    expect(detail.page.locator(".receipt")).to_contain_text("instead")
    clean("the receipt", detail.page.content())
    question = open_request(approver, product, run)
    question.get_by_role("textbox", name="Answer").fill(f"It is {CANARIES['response']}")
    question.get_by_role("button", name="Send answer").click()
    expect(status_of(page)).to_have_text("Completed")

    used = str(product.told(run))
    for place in ("input", "args", "comment", "response", "result"):
        assert CANARIES[place] in used, f"the model was not told {place}: this test proves nothing"
    clean("a page that was followed live", page.content())
    assert len(frames) > 20
    clean("a socket's frames", "".join(map(str, frames)))
    every_page_is_clean(product, operator, run, asked["id"])
    every_answer_is_clean(product, run, asked["id"])
    every_row_is_clean(product)
    every_file_is_clean(product)


def test_h2_secrets_in_addresses_and_headers_are_not_logged(product: Product) -> None:
    secret = CANARIES["error"]
    with httpx.Client(
        base_url=product.origin, cookies=product.cookies("operator"), timeout=30
    ) as client:
        for path in ("/runs/?agent=", "/", "/audit/?actor=", "/api/v1/runs?agent="):
            client.get(
                f"{path}{secret}",
                headers={"User-Agent": secret, "Referer": f"{product.origin}/?key={secret}"},
            )
        client.post("/login/", data={"username": secret, "password": secret})
        client.post("/api/v1/runs", json={"agent": secret, "input": secret, secret: 1})
    with httpx.Client(base_url=product.origin, timeout=30) as nobody:
        nobody.get("/api/v1/runs", headers={"Authorization": f"Bearer {secret}"})
        nobody.get("/login/")
        form = {
            "username": secret,
            "password": secret,
            "csrfmiddlewaretoken": nobody.cookies["csrftoken"],
        }
        assert nobody.post("/login/", data=form).status_code == 200

    every_row_is_clean(product)
    every_file_is_clean(product)


def listen(page: Page, frames: list[str | bytes]) -> None:
    """Keep every frame that comes to this page."""

    def opened(socket: WebSocket) -> None:
        socket.on("framereceived", lambda frame: frames.append(frame))

    page.on("websocket", opened)


def every_page_is_clean(product: Product, somebody: Person, run: str, interrupt: str) -> None:
    spans = product.rows("SELECT id FROM span WHERE run_id = %s", run)
    addresses = ["/", "/runs/", f"/runs/{run}/", f"/runs/{run}/cancel/", "/inbox/?view=decided", f"/inbox/{interrupt}/",
                 "/traces/", f"/traces/{run}/", f"/audit/?run={run}", "/agents/",
                 *(f"/traces/{run}/?span={span['id']}" for span in spans)]  # fmt: skip
    with httpx.Client(
        base_url=product.origin, cookies=product.cookies(somebody.name), timeout=30
    ) as client:
        for address in addresses:
            answer = client.get(address)
            assert answer.status_code in (200, 302, 409), address
            clean(address, answer.text)


def every_answer_is_clean(product: Product, run: str, interrupt: str) -> None:
    parts = ["", "/events?limit=500", "/tool-calls", "/trace", "/checkpoints", "/provenance"]
    paths = [
        "/runs",
        *(f"/runs/{run}{part}" for part in parts),
        "/audit",
        f"/interrupts/{interrupt}",
        "/interrupts",
    ]
    with product.api("viewer") as client:
        for path in paths:
            clean(path, client.get(path).text)


def every_row_is_clean(product: Product) -> None:
    tables = product.rows("SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'")
    for table in (row["name"] for row in tables):
        query = f'SELECT to_jsonb(t)::text AS text FROM "{table}" t'  # noqa: S608 - names from the catalogue
        rows: list[dict[str, Any]] = product.rows(query)
        clean(f"the table {table}", "\n".join(row["text"] for row in rows))


def every_file_is_clean(product: Product) -> None:
    clean("the logs", product.logs())
    kept = ("postgres", "workspaces", "e2e-scripts", "sockets", "logs")
    files = [
        path
        for path in product.folder.rglob("*")
        if path.is_file() and not set(kept) & set(path.parts)
    ]
    for path in files:
        clean(path.name, _text(path))


def clean(where: str, text: str) -> None:
    """No secret, whole or with only its ends cut off."""
    found = [place for place, secret in CANARIES.items() if secret[6:-6] in text]
    assert found == [], f"{where} holds the secrets of: {found}"


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")

"""Who is in no project sees nothing of it, at any address; who has logged out hears nothing more."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from django.urls import URLPattern, URLResolver
from playwright.sync_api import Page, WebSocket, expect
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from config.urls import urlpatterns, websocket_urlpatterns
from tests.e2e.conftest import People
from tests.e2e.product import Product

pytestmark = pytest.mark.timeout(120)

MARK = "only-for-the-project"
NOT_LOGGED_IN, NO_SUCH_RUN = 4401, 4404
# A body that fits, by the end of the path: what does not fit is refused whoever sends it.
BODIES: dict[str, Any] = {
    "decisions": {"action": "approve", "version": 1, "digest": "0" * 64},
    "proposals": {"version": 1, "digest": "0" * 64, "args": {}},
    "undo": {"version": 1},
    "override": {"action": "approve", "version": 1, "digest": "0" * 64, "reason": "x"},
    "assignments": {"people": ["approver"]},
    "snooze": {"minutes": 5},
    "personal": {"reason": "x"},
    "fork": {"checkpoint_id": str(uuid.UUID(int=1)), "changes": {}},
}


@dataclass(frozen=True)
class Ids:
    """Things of the demo's project."""

    run_id: str
    interrupt_id: str
    thread_id: str
    # None is there; that they are told apart is shown in tests/approvals/test_sharing.py.
    delegation_id: str = str(uuid.UUID(int=1))
    grant_id: str = str(uuid.UUID(int=1))
    deletion_id: str = str(uuid.UUID(int=1))
    job_id: str = str(uuid.UUID(int=1))
    checkpoint_id: str = str(uuid.UUID(int=1))

    @property
    def span_id(self) -> str:
        """The root of the run's trace."""
        return self.run_id


@pytest.fixture(scope="module")
def ids(product: Product) -> Iterator[Ids]:
    run = product.start_run("notices", f"Post what is {MARK}")
    asked = product.open_interrupt(run)
    yield Ids(run, asked["id"], product.get("operator", f"/runs/{run}")["thread_id"])
    product.post("operator", f"/runs/{run}/cancel", {})


def test_a_stranger_gets_404_on_every_page_of_a_project(product: Product, ids: Ids) -> None:
    cookies = product.cookies("stranger")
    lists: list[str] = []
    with httpx.Client(base_url=product.origin, cookies=cookies, timeout=30) as client:
        headers = {"X-CSRFToken": cookies["csrftoken"], "Origin": product.origin}
        for route in pages(urlpatterns):
            address = filled(route, ids)
            answer = client.get(f"/{address}")
            # An address that was asked for may come back in the link to the login.
            told = answer.text.replace(f"/{address}", "")
            assert MARK not in told and ids.run_id not in told, address
            if address == route:
                lists.append(route)
                continue
            # What is only read, or only sent to, refuses the other before it looks at what the address names.
            assert answer.status_code in (404, 405), address
            sent = client.post(f"/{address}", data={"action": "approve"}, headers=headers)
            assert sent.status_code in (404, 405), address
            assert 404 in (answer.status_code, sent.status_code), address
    assert {"", "runs/", "inbox/", "traces/", "audit/", "agents/"} <= set(lists)


def test_nobody_is_sent_to_the_login_from_every_page(product: Product, ids: Ids) -> None:
    with httpx.Client(base_url=product.origin, timeout=30) as client:
        for route in pages(urlpatterns):
            if route in ("login/", "logout/", "healthz", "readyz", "metrics", "favicon.ico"):
                continue
            answer = client.get(f"/{filled(route, ids)}")
            assert answer.status_code == 302, route
            assert answer.headers["location"].startswith("/login/?next="), route


def test_a_stranger_gets_404_on_every_call_of_the_api(product: Product, ids: Ids) -> None:
    schema = product.get("stranger", "/openapi.json")
    called = 0
    with (
        product.api("stranger") as client,
        httpx.Client(base_url=product.origin, timeout=30) as nobody,
    ):
        for path, methods in schema["paths"].items():
            address = filled(path.removeprefix("/api/v1"), ids)
            for method in methods:
                body = BODIES.get(path.rsplit("/", 1)[-1], {}) if method == "post" else None
                answer = client.request(method, address, json=body)
                assert MARK not in answer.text and ids.run_id not in answer.text.replace(
                    address, ""
                ), path
                if "{" in path:
                    assert answer.status_code == 404, (method, path, answer.text)
                    assert answer.headers["content-type"].startswith("application/problem+json")
                assert nobody.request(method, f"/api/v1{address}", json=body).status_code == 401, (
                    path
                )
                called += 1
    assert called > 12
    with product.api("stranger") as client:
        assert client.post("/runs", json={"agent": "notices", "input": "x"}).status_code in (
            403,
            404,
        )


def test_a_stranger_hears_nothing_on_any_socket(product: Product, ids: Ids) -> None:
    for pattern in websocket_urlpatterns:
        address = filled(str(pattern.pattern), ids)
        with socket(product, address, product.cookies("stranger")) as connection:
            if address == str(pattern.pattern):
                told = [json.loads(connection.recv(timeout=10)) for _ in range(2)]
                assert all(one.get("open", 0) == 0 and one.get("ids", []) == [] for one in told)
                continue
            assert close_code(connection) == NO_SUCH_RUN, address
        with socket(product, address, {}) as connection:
            assert close_code(connection) == NOT_LOGGED_IN, address


@pytest.mark.browser
def test_j2_a_logout_in_another_tab_ends_the_sockets(product: Product, people: People) -> None:
    operator = people()
    operator.take_session(product.log_in("operator"))
    opened: list[WebSocket] = []
    run = product.start_run("slow", "Tell a long story")
    page = operator.context.new_page()
    page.on("websocket", lambda one: opened.append(one))
    page.goto(f"/runs/{run}/")
    expect(page.locator("[data-answer-text]")).to_contain_text("once upon a time")

    other = operator.open("/agents/")
    log_out(other)

    banner = page.locator("[data-connection]")
    expect(banner.get_by_role("link", name="Sign in")).to_be_visible()
    for one in opened:
        if not one.is_closed():
            one.wait_for_event("close")
    heard: list[str | bytes] = []
    for one in opened:
        one.on("framereceived", lambda frame: heard.append(frame))
    # The run goes on, and the page that is still open learns nothing of it.
    product.wait_for_status(run, "completed")
    assert heard == []
    expect(page.locator("#run-header")).not_to_contain_text("Completed")
    page.reload()
    expect(page.get_by_role("heading", name="Sign in to Interlock")).to_be_visible()


def log_out(page: Page) -> None:
    page.get_by_role("button", name="Account: operator").click()
    page.get_by_role("button", name="Log out").click()
    page.wait_for_url("**/login/**")


def pages(patterns: list[URLPattern | URLResolver], prefix: str = "") -> Iterator[str]:
    """Every route of a page; the API and the admin answer for themselves."""
    for pattern in patterns:
        route = prefix + str(pattern.pattern)
        if route.startswith(("api/", "admin/")):
            continue
        if isinstance(pattern, URLResolver):
            yield from pages(pattern.url_patterns, route)
        else:
            yield route


def filled(route: str, ids: Ids) -> str:
    """The route with things of the demo's project in it."""
    for name, value in {**vars(ids), "span_id": ids.span_id}.items():
        for form in (f"<uuid:{name}>", f"{{{name}}}"):
            route = route.replace(form, value)
    assert not set("<{") & set(route), f"{route}: give this test an example of what it names"
    return route


def socket(product: Product, address: str, cookies: dict[str, str]) -> ClientConnection:
    cookie = "; ".join(f"{name}={value}" for name, value in cookies.items())
    headers: dict[str, Any] = {"Origin": product.origin, **({"Cookie": cookie} if cookie else {})}
    return connect(
        f"ws{product.origin.removeprefix('http')}/{address}",
        additional_headers=headers,
        open_timeout=20,
    )


def close_code(connection: ClientConnection) -> int | None:
    with pytest.raises(ConnectionClosed) as closed:
        connection.recv(timeout=20)
    return closed.value.rcvd.code if closed.value.rcvd else None

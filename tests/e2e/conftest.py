"""The product once for the whole session, and a browser for each module that wants one."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.e2e.browsing import Person, photograph
from tests.e2e.product import Product, remove

People = Callable[..., Person]
FAILED = pytest.StashKey[bool]()


@pytest.fixture(scope="session")
def product() -> Iterator[Product]:
    """The running product."""
    folder = Path(tempfile.mkdtemp(prefix="interlock-e2e-", dir="/tmp"))
    running = Product(folder / "data")
    try:
        yield running.start()
    finally:
        running.stop()
        remove(running.folder)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A browser for one module: tests that use Django's database must not meet its event loop."""
    installed = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=installed, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let fixtures know, while they end, whether their test has failed."""
    report = yield
    if report.when == "call":
        item.stash[FAILED] = report.failed
    return report


@pytest.fixture
def people(product: Product, chromium: Browser, request: pytest.FixtureRequest) -> Iterator[People]:
    """Seats somebody at a browser of their own: `people("approver")`. A failure leaves pictures of all pages."""
    seats: list[Person] = []

    def seat(name: str = "", **options: Any) -> Person:
        seats.append(Person(product, chromium, name, **options))
        return seats[-1]

    yield seat
    for somebody in seats:
        if request.node.stash.get(FAILED, False):
            photograph(somebody)
        somebody.context.close()


@pytest.fixture
def nothing_open(product: Product) -> None:
    """No run of another test asks for anything."""
    for run in product.rows("SELECT id FROM run WHERE ended_at IS NULL"):
        with product.api("operator") as client:
            # 409 where it has ended just now by itself.
            assert client.post(f"/runs/{run['id']}/cancel", json={}).status_code in (202, 409)
        product.wait_for_status(str(run["id"]))

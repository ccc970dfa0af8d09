"""The same journey without a page: followed over SSE, a socket or the command line, cut and resumed anywhere."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.config.stack_process import BASE, command_env
from tests.e2e.product import MORE, Product

pytestmark = pytest.mark.timeout(120)

Event = dict[str, Any]
Follow = Callable[[Product, str, int, bool], Iterator[Event]]
TASK = "The slugify package has a failing test. Find out why and mend it."


def by_sse(product: Product, run: str, after: int, by_header: bool) -> Iterator[Event]:
    """Server-sent events after this one, asked for in the address or as browsers do when they come back."""
    url = f"{product.origin}/api/v1/runs/{run}/events"
    headers = {"Authorization": f"Bearer {product.tokens['viewer']}", "Accept": "text/event-stream"}
    if by_header:
        headers["Last-Event-ID"] = str(after)
    with (
        httpx.Client(timeout=30) as client,
        client.stream(
            "GET", url, headers=headers, params={} if by_header else {"after": after}
        ) as answer,
    ):
        assert answer.headers["content-type"].startswith("text/event-stream")
        fields: dict[str, str] = {}
        for line in answer.iter_lines():
            if line:
                name, _, value = line.partition(": ")
                fields[name] = value
            elif "data" in fields:
                event = json.loads(fields["data"])
                assert (fields["id"], fields["event"]) == (str(event["seq"]), event["type"])
                yield event
                fields = {}


def by_websocket(product: Product, run: str, after: int, by_header: bool) -> Iterator[Event]:
    """The JSON socket after this event, let in by token or by cookie."""
    url = f"{product.origin}/api/v1/ws/runs/{run}/?after={after}".replace("http", "ws", 1)
    cookie = "; ".join(f"{name}={value}" for name, value in product.cookies("viewer").items())
    headers = (
        {"Authorization": f"Bearer {product.tokens['viewer']}"}
        if by_header
        else {"Cookie": cookie, "Origin": product.origin}
    )
    # Without a bound: with one, a client that has not read all waits at its close.
    with connect(url, additional_headers=headers, open_timeout=20, max_queue=None) as socket:
        while True:
            event = json.loads(socket.recv(timeout=30))
            if event["type"] != "heartbeat":
                yield event


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("follow", [by_sse, by_websocket])
def test_every_event_comes_once_and_in_order(product: Product, follow: Follow, seed: int) -> None:
    chance = random.Random(seed)
    run = product.start_run("code-fixer", TASK)
    seen: list[Event] = []
    cuts = 0
    until = time.monotonic() + 90
    while not seen or seen[-1]["type"] != "done":
        assert time.monotonic() < until, f"no end after {len(seen)} events"
        stream = follow(product, run, seen[-1]["seq"] if seen else 0, chance.random() < 0.5)
        for event in _some(stream, chance.randint(1, 12)):
            seen.append(event)
            if event["type"] == "interrupt":
                asked = product.get("approver", f"/interrupts/{event['data']['id']}")
                product.decide(asked)
        cuts += 1

    assert [_plain(event) for event in seen] == product.stored_events(run)
    assert cuts > 3
    assert "Task was destroyed" not in product.logs()
    assert seen[-1]["data"]["status"] == "completed"
    assert "Done. The failing tests pass" in seen[-1]["data"]["output"]
    paged = product.get("viewer", f"/runs/{run}/events?after=0&limit=500")
    assert [_plain(event) for event in paged["events"]] == [_plain(event) for event in seen]


def test_several_followers_see_the_same(product: Product) -> None:
    run = product.start_run("talker")
    product.decide(product.open_interrupt(run))
    product.wait_for_status(run, "completed")

    late = list(by_sse(product, run, 0, by_header=False))
    heard = list(_some(by_websocket(product, run, 0, by_header=True), len(late)))

    assert [_plain(event) for event in late] == product.stored_events(run)
    assert heard == late
    assert list(by_sse(product, run, late[-1]["seq"], by_header=True)) == []


def test_the_command_line_follows_to_the_request_and_from_there_to_the_end(
    product: Product,
) -> None:
    started = _manage(
        product, "runs", "start", "--user", "operator", "--project", "demo", "--agent", "code-fixer",
        "--input", TASK, "--follow",
    )  # fmt: skip
    assert started.returncode == 0, started.stderr
    assert "waits for a person" in started.stderr
    run = started.stderr.split()[1]
    assert "write_file" in started.stdout

    product.decide(product.open_interrupt(run))
    shown = _manage(product, "runs", "show", run, "--user", "operator", "--follow")

    assert shown.returncode == 0, shown.stderr
    firsts = [line.split()[0] for line in shown.stdout.splitlines() if line.strip()]
    seqs = [int(word) for word in firsts if word.isdigit()]
    assert seqs == sorted(set(seqs))
    assert "git_commit" in shown.stdout
    assert product.wait_for_status(run)["status"] == "completed"


def _some(stream: Iterator[Event], count: int) -> Iterator[Event]:
    """At most so many of a stream, which is then cut; a stream that ends by itself is no fault."""
    try:
        for _, event in zip(range(count), stream, strict=False):
            yield event
            if event["type"] == "done":
                return  # a socket stays open: the run may be retried
    except (ConnectionClosed, TimeoutError, httpx.TransportError):
        return
    finally:
        stream.close()  # type: ignore[attr-defined]


def _plain(event: Event) -> Event:
    assert event["ts"].endswith("Z")
    return {key: event[key] for key in ("seq", "type", "step", "data")}


def _manage(product: Product, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=BASE,
        env=command_env(product.folder, product.stack.port, {**MORE, "LOG_LEVEL": "WARNING"}),
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )

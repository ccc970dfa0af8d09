"""A client that does not read costs the server no memory, and loses nothing."""

from __future__ import annotations

import json
import re
import socket
import time
from pathlib import Path

import pytest

from runtime_core.models import Run
from tests.api.room import Room
from tests.live.web import Web, deltas, emit, finish, wait_until

EVENTS, SIZE = 800, 60_000  # 48 MB


@pytest.fixture
def long_run(room: Room) -> Run:
    """A run with far more to say than a server should hold."""
    run = room.run("running")
    for _ in range(EVENTS // 50):
        emit(run, deltas(50, "x" * SIZE))
    finish(run)
    return run


def test_a_socket_that_is_not_read_is_waited_for(
    web: Web, room: Room, token: str, long_run: Run
) -> None:
    with web.run_socket(long_run, token, max_queue=4) as client:
        grown = growth_while_stuck(web)
        seqs = [json.loads(client.recv(10))["seq"] for _ in range(EVENTS + 1)]

    assert grown < 30_000_000
    assert seqs == list(range(1, EVENTS + 2))


def test_a_stream_that_is_not_read_is_waited_for(
    web: Web, room: Room, token: str, long_run: Run
) -> None:
    request = (
        f"GET /api/v1/runs/{long_run.id}/events HTTP/1.1\r\nHost: 127.0.0.1:{web.port}\r\n"
        f"Authorization: Bearer {token}\r\nAccept: text/event-stream\r\nConnection: close\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", web.port), timeout=20) as client:
        client.sendall(request.encode())
        grown = growth_while_stuck(web)
        answer = b""
        while chunk := client.recv(1 << 20):
            answer += chunk

    assert grown < 60_000_000
    assert [int(n) for n in re.findall(rb"\nid: (\d+)\n", answer)] == list(range(1, EVENTS + 2))


def growth_while_stuck(web: Web) -> int:
    """By how many bytes the server has grown when it sends no more."""
    before = memory(web)
    sizes = [before]

    def settled() -> bool:
        time.sleep(0.2)  # between two looks
        sizes.append(memory(web))
        return len(sizes) > 8 and max(sizes[-6:]) - min(sizes[-6:]) < 1_000_000

    wait_until(settled, 15)
    return max(sizes) - before


def memory(web: Web) -> int:
    status = Path(f"/proc/{web.process.pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found
    return int(found[1]) * 1024

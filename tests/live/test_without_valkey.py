"""Valkey dead: the API answers as quickly as ever, and who watches loses nothing."""

from __future__ import annotations

import time
from typing import Any

import httpx

from tests.api.room import Room
from tests.live.web import Web, deltas, emit, received, stored


def test_without_valkey_everything_still_arrives(deaf_web: Web, room: Room, token: str) -> None:
    run = room.run("running")

    with deaf_web.run_socket(run, token) as socket:
        emit(run, deltas(3), hint=False)
        first = received(socket, 3, within_s=3)
        emit(run, deltas(3), hint=False)
        events = first + received(socket, 6, within_s=3)

    assert events == stored(run)


def test_without_valkey_writes_do_not_wait_for_it(deaf_web: Web, room: Room, token: str) -> None:
    api = httpx.Client(
        base_url=f"{deaf_web.origin}/api/v1",
        headers={"Authorization": f"Bearer {token}"},
        timeout=30,
    )

    def timed(path: str, body: Any = None) -> tuple[float, httpx.Response]:
        started = time.monotonic()
        answer = api.post(path, json=body)
        return time.monotonic() - started, answer

    with api:
        starting, run = timed("/runs", {"agent": "fixer", "input": "x"})
        pausing, paused = timed(f"/runs/{run.json()['id']}/pause")
        cancelling, cancelled = timed(f"/runs/{run.json()['id']}/cancel")

    assert (run.status_code, paused.status_code, cancelled.status_code) == (201, 202, 202)
    assert max(starting, pausing, cancelling) < 2

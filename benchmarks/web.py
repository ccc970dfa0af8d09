"""What a client of the API sees: the first event of a run and of a decision, and fan-out to many sockets."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
from websockets.asyncio.client import connect as connect_async
from websockets.sync.client import ClientConnection, connect

from benchmarks.latency import ASKS, interrupted
from benchmarks.place import Place
from benchmarks.table import Figure

PATIENCE_S = 30.0
SOCKETS = 50
EVENTS_A_SECOND = 40


def http(place: Place, times: int) -> Iterator[Figure]:
    """One client with one kept connection; events come over the websocket."""
    place.start_parts()
    agent = place.agent("answers", [{"text": "Ready."}])
    with _client(place, "operator") as client:
        created = [_create_once(place, client, agent) for _ in range(times + 3)][3:]
    name = "HTTP run create → the worker's first event at the client"
    yield Figure.latency(name, created, "25 / 60 (goal 10 / 20)")
    agent = place.agent("asks", ASKS)
    with _client(place, "approver") as client:
        decided = [_decide_once(place, client, agent) for _ in range(times + 3)][3:]
    name = "HTTP decision → the worker's first event at the client"
    yield Figure.latency(name, decided, "25 / 60 (goal 10 / 20)")


def fanout(place: Place, seconds: int) -> Iterator[Figure]:
    """One run's events, 200 bytes each, to many sockets at a given pace."""
    place.start_parts()
    run, _ = interrupted(place, place.agent("asks", ASKS))
    count = seconds * EVENTS_A_SECOND
    delays, lost = asyncio.run(_fan_out(place, run, count))
    name = (
        f"fan-out, {SOCKETS} sockets x {EVENTS_A_SECOND} events/s, {lost} of {SOCKETS * count} lost"
    )
    yield Figure.latency(name, delays, "p99 25 (goal 12), 0 lost")


def _client(place: Place, person: str) -> httpx.Client:
    headers = {"Authorization": f"Bearer {place.tokens[person]}"}
    return httpx.Client(base_url=f"http://{place.origin}", headers=headers, timeout=PATIENCE_S)


def _socket(place: Place, run_id: str, after: int) -> ClientConnection:
    address = f"ws://{place.origin}/api/v1/ws/runs/{run_id}/?after={after}"
    return connect(address, additional_headers=_bearer(place), compression=None)


def _bearer(place: Place) -> dict[str, str]:
    return {"Authorization": f"Bearer {place.tokens['operator']}"}


def _create_once(place: Place, client: httpx.Client, agent: str) -> float:
    began = time.monotonic()
    answer = client.post("/api/v1/runs", json={"agent": agent, "input": "Go."})
    assert answer.status_code == 201, answer.text
    with _socket(place, answer.json()["id"], 0) as socket:
        return _until_running(socket) - began


def _decide_once(place: Place, client: httpx.Client, agent: str) -> float:
    run, interrupt = interrupted(place, agent)
    shown = client.get(f"/api/v1/interrupts/{interrupt.id}").json()
    decision = {"action": "approve", "version": shown["version"], "digest": shown["digest"]}
    with _socket(place, str(run.id), 0) as socket:
        while json.loads(socket.recv(PATIENCE_S)).get("data", {}).get("to") != "interrupted":
            pass
        began = time.monotonic()
        answer = client.post(f"/api/v1/interrupts/{interrupt.id}/decisions", json=decision)
        assert answer.status_code == 200, answer.text
        return _until_running(socket) - began


def _until_running(socket: ClientConnection) -> float:
    """When a worker's first event came; the rest of the run is read afterwards."""
    at, event = 0.0, {}
    while event.get("type") != "done":
        event = json.loads(socket.recv(PATIENCE_S))
        if not at and event.get("data", {}).get("to") == "running":
            at = time.monotonic()
    return at


async def _fan_out(place: Place, run: Any, count: int) -> tuple[list[float], int]:
    sent: dict[int, float] = {}
    seen: list[dict[int, float]] = [{} for _ in range(SOCKETS)]
    after = await asyncio.to_thread(_last_seq, run)
    ready = asyncio.Semaphore(0)
    listeners = [
        asyncio.create_task(_listen(place, run, after, mine, count, ready)) for mine in seen
    ]
    for _ in listeners:
        await ready.acquire()
    writer = threading.Thread(target=_write, args=(run, count, sent))
    writer.start()
    await asyncio.wait(listeners, timeout=PATIENCE_S + count / EVENTS_A_SECOND)
    for listener in listeners:
        listener.cancel()
    await asyncio.to_thread(writer.join)
    delays = [at - sent[seq] for mine in seen for seq, at in mine.items()]
    return delays, SOCKETS * count - len(delays)


async def _listen(
    place: Place, run: Any, after: int, mine: dict[int, float], count: int, ready: asyncio.Semaphore
) -> None:
    address = f"ws://{place.origin}/api/v1/ws/runs/{run.id}/?after={after}"
    async with connect_async(
        address, additional_headers=_bearer(place), compression=None, open_timeout=PATIENCE_S
    ) as socket:
        ready.release()
        while len(mine) < count:
            text = await socket.recv()
            at = time.monotonic()
            if text.startswith('{"seq":'):
                mine[int(text[7 : text.index(",")])] = at


def _last_seq(run: Any) -> int:
    from django.db import connection

    from runtime_core.models import Run

    last = int(Run.objects.values_list("last_seq", flat=True).get(id=run.id))
    connection.close()
    return last


def _write(run: Any, count: int, sent: dict[int, float]) -> None:
    """Events at an even pace, each committed and hinted as the runtime does it; when each was committed."""
    from django.db import connection

    from runtime_core import transitions
    from runtime_core.events.publish import announce

    began = time.monotonic()
    for number in range(count):
        time.sleep(max(began + number / EVENTS_A_SECOND - time.monotonic(), 0))
        event = transitions.NewEvent("progress", {"message": "x" * 150})
        at = time.monotonic()
        seq = transitions.tell(run.id, [event])
        sent[seq] = at
        announce(run.id, seq, run.project_id)
    connection.close()

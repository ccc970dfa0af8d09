"""A real daphne on the test database, and clients that follow runs through it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx
from websockets.sync.client import ClientConnection, connect

from runtime_core import transitions
from runtime_core.events.publish import announce
from runtime_core.models import Event, Run
from runtime_core.transitions import NewEvent


class Web:
    """One web process."""

    def __init__(self, env: dict[str, str], output: int | None = None) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.origin = f"http://127.0.0.1:{self.port}"
        command = [sys.executable, "-m", "daphne", "-v", "0", "-b", "127.0.0.1"]
        self.process = subprocess.Popen(
            [*command, "-p", str(self.port), "config.asgi:application"],
            env={**env, "INTERLOCK_PART": "web", "SECRET_KEY": env["SECRET_KEY"]},
            stdout=output,
            stderr=output,
        )
        wait_until(self._answers, 30)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(15)

    def socket(
        self,
        path: str,
        token: str | None = None,
        max_queue: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> ClientConnection:
        """A websocket, by token if there is one."""
        bearer = {"Authorization": f"Bearer {token}"} if token else {}
        given = {**(headers or {}), **bearer}
        return connect(
            f"ws://127.0.0.1:{self.port}{path}",
            additional_headers=given,
            open_timeout=10,
            max_size=None,
            max_queue=max_queue,
        )

    def run_socket(
        self, run: Run, token: str, after: int = 0, max_queue: int | None = None
    ) -> ClientConnection:
        """The run's events; a client with a `max_queue` stops reading when it has that many unread."""
        return self.socket(f"/api/v1/ws/runs/{run.id}/?after={after}", token, max_queue)

    @contextmanager
    def sse(
        self, run: Run, token: str, after: int = 0, headers: Mapping[str, str] | None = None
    ) -> Iterator[httpx.Response]:
        """An open stream of server-sent events."""
        own = {"Accept": "text/event-stream", "Authorization": f"Bearer {token}"}
        given = {**own, **(headers or {})}
        url = f"{self.origin}/api/v1/runs/{run.id}/events?after={after}"
        with httpx.Client(timeout=30) as client, client.stream("GET", url, headers=given) as answer:
            yield answer

    def _answers(self) -> bool:
        assert self.process.poll() is None, "daphne ended"
        try:
            return httpx.get(f"{self.origin}/healthz", timeout=2).status_code == 200
        except httpx.TransportError:
            return False


def emit(run: Run, events: list[NewEvent], *, hint: bool = True) -> int:
    """Append events as the runtime does: under the run's row lock, the hint after the commit."""
    last_seq = transitions.tell(run.id, events)
    if hint:
        announce(run.id, last_seq, run.project_id)
    return last_seq


def deltas(count: int, text: str = "ha") -> list[NewEvent]:
    """Text that comes in pieces, all equal."""
    return [
        NewEvent("text_delta", {"step": 0, "offset": n * len(text), "text": text}, step=0)
        for n in range(count)
    ]


def finish(run: Run, status: str = "completed") -> None:
    """End the run with its last event."""
    Run.objects.filter(id=run.id).update(status=status, ended_at=run.created_at)
    emit(run, [NewEvent("done", {"status": status, "output": "ok"})])


def stored(run: Run) -> list[dict[str, Any]]:
    """The run's events as the API shows them, from the rows."""
    return [
        {"seq": e.seq, "type": e.type, "step": e.step, "data": e.data}
        for e in Event.objects.filter(run=run).order_by("seq")
    ]


def received(socket: ClientConnection, last_seq: int, within_s: float = 20) -> list[dict[str, Any]]:
    """What the socket brings up to that event, without heartbeats."""
    events: list[dict[str, Any]] = []
    until = time.monotonic() + within_s
    while not events or events[-1]["seq"] < last_seq:
        event = json.loads(socket.recv(max(until - time.monotonic(), 0.01)))
        if event["type"] != "heartbeat":
            events.append(without_time(event))
    return events


def sse_events(answer: httpx.Response) -> Iterator[dict[str, Any]]:
    """The events of a stream as they come; id and event line must agree with the data."""
    fields: dict[str, str] = {}
    for line in answer.iter_lines():
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "data" in fields:
            event = json.loads(fields["data"])
            assert (fields["id"], fields["event"]) == (str(event["seq"]), event["type"])
            yield without_time(event)
            fields = {}


def without_time(event: dict[str, Any]) -> dict[str, Any]:
    assert event.pop("ts").endswith("Z")
    return event


def wait_until(true: Callable[[], Any], within_s: float = 10) -> None:
    """Return when the condition holds; fail if it does not in time."""
    until = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.02)

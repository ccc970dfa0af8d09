"""The run page's socket: rows and regions as HTML, for those who may see the run."""

from __future__ import annotations

import json
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection

from runtime_core.models import ApiToken, Run
from runtime_core.transitions import NewEvent
from tests.live.conftest import web  # noqa: F401 (a fixture)
from tests.live.web import Web, emit, finish
from tests.pages.world import World

HOSTILE = "<img src=x onerror=alert(1)></script>"


@pytest.fixture
def world(transactional_db: None) -> World:
    """Committed, so that the web process sees it."""
    return World()


def open_socket(web: Web, run: Run, user: Any, after: int = 0) -> ClientConnection:  # noqa: F811
    return web.socket(f"/ws/runs/{run.id}/?after={after}", ApiToken.issue(user)[1])


def frames_until(socket: ClientConnection, *wanted: tuple[str, Any]) -> list[dict[str, Any]]:
    """Frames until one of each wanted (key, value) has come."""
    frames: list[dict[str, Any]] = []
    missing = set(wanted)
    while missing:
        frame = json.loads(socket.recv(15))
        frames.append(frame)
        missing -= {(key, value) for key, value in missing if frame.get(key) == value}
    return frames


def test_it_greets_replays_and_goes_on(web: Web, world: World) -> None:  # noqa: F811
    run = world.run("running")
    emit(run, [NewEvent("step_start", {"kind": "model", "index": 0}, 0)])
    with open_socket(web, run, world.viewer) as socket:
        hello, first = frames_until(socket, ("seq", 1))[:1], None
        assert hello[0]["type"] == "hello"
        assert hello[0]["seq"] == 1
        emit(
            run,
            [
                NewEvent("text_delta", {"step": 0, "offset": 0, "text": "Hel"}, 0),
                NewEvent("text_delta", {"step": 0, "offset": 3, "text": "lo"}, 0),
                NewEvent(
                    "tool_call_start", {"call_id": "c", "tool": HOSTILE, "args": {"a": HOSTILE}}
                ),
            ],
        )
        frames = frames_until(socket, ("seq", 4))
        first, second, call = [f for f in frames if f["type"] == "event"][-3:]

    assert first["event"]["data"] == {"step": 0, "offset": 0, "text": "Hel"}
    assert first["html"].startswith("<li")
    assert second["html"] is None
    assert "<img" not in call["html"]
    assert "&lt;img src=x onerror=alert(1)&gt;" in call["html"]
    assert 'data-seq="4"' in call["html"]


def test_regions_come_anew_when_the_run_changes(web: Web, world: World) -> None:  # noqa: F811
    run = world.run("running", title=HOSTILE)
    with open_socket(web, run, world.operator) as socket:
        frames_until(socket, ("type", "hello"))
        Run.objects.filter(id=run.id).update(output=f"The answer {HOSTILE}")
        finish(run)
        frames = frames_until(
            socket,
            *(
                ("target", name)
                for name in ("run-header", "actions", "meters", "timeline", "answer")
            ),
        )

    regions = {f["target"]: f["html"] for f in frames if f["type"] == "fragment"}
    assert 'id="run-header"' in regions["run-header"]
    assert "Completed" in regions["run-header"]
    assert "Cancel run" not in regions["actions"]
    assert "The answer &lt;img" in regions["answer"]
    assert "<img" not in "".join(regions.values())


def test_the_buttons_are_those_that_this_person_may_press(web: Web, world: World) -> None:  # noqa: F811
    run = world.run("running")
    seen = {}
    for user in (world.operator, world.viewer):
        with open_socket(web, run, user) as socket:
            frames_until(socket, ("type", "hello"))
            emit(run, [NewEvent("checkpoint", {"id": "x", "reason": "model"})])
            frames = frames_until(socket, ("target", "actions"))
            seen[user] = frames[-1]["html"]

    assert "Cancel run" in seen[world.operator]
    assert "Cancel run" not in seen[world.viewer]


@pytest.mark.parametrize(("name", "code"), [("stranger", 4404), ("viewer", None)])
def test_strangers_are_sent_away(web: Web, world: World, name: str, code: int | None) -> None:  # noqa: F811
    run = world.run("running")

    with open_socket(web, run, getattr(world, name)) as socket:
        if code is None:
            assert frames_until(socket, ("type", "hello"))
            return
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(15)

    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == code

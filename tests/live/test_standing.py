"""Who may open a socket, and when it is closed on them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import connections
from django.test import Client
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection

from runtime_core import clock
from runtime_core.models import ApiToken, Membership, Run
from tests.api.room import Room, interrupt, project, tool_call
from tests.live.web import Web, deltas, emit, received, sse_events

EVENTS = "/api/v1/ws/runs/{}/?after=0"


def by_cookie(web: Web, run: Run, user: User, origin: str | None = None) -> ClientConnection:
    """The run's socket as a browser on our own page opens it."""
    browser = Client()
    browser.force_login(user)
    cookie = f"sessionid={browser.cookies['sessionid'].value}"
    origin = web.origin if origin is None else origin
    headers = {"Cookie": cookie, **({"Origin": origin} if origin else {})}
    return web.socket(EVENTS.format(run.id), headers=headers)


def close_code(socket: ClientConnection, within_s: float = 10) -> int:
    """The code with which the server closes; events before it are read and dropped."""
    until = time.monotonic() + within_s
    try:
        while True:
            socket.recv(max(until - time.monotonic(), 0.01))
    except ConnectionClosed as closed:
        assert closed.rcvd is not None
        return closed.rcvd.code


def test_j1_only_a_page_of_our_own_opens_a_socket_with_a_cookie(web: Web, room: Room) -> None:
    run = room.run("running")
    port = web.port
    foreign = [
        "",
        "null",
        "https://evil.example",
        "https://127.0.0.1.evil.example",
        f"http://127.0.0.1@evil.example:{port}",
        f"https://127.0.0.1:{port}",
        f"http://127.0.0.1:{port + 1}",
        f"HTTP://127.0.0.1:{port}",
        f"http://localhost:{port}",
    ]

    for origin in foreign:
        with pytest.raises(InvalidStatus) as refused, by_cookie(web, run, room.ana, origin):
            pass
        assert refused.value.response.status_code == 403, origin
    emit(run, deltas(1))
    with by_cookie(web, run, room.ana) as socket:
        assert received(socket, 1)


def test_a_socket_says_why_it_does_not_open(web: Web, room: Room, token: str) -> None:
    run = room.run("running")
    stranger = ApiToken.issue(room.cy)[1]
    narrow = ApiToken.issue(room.ana, project("elsewhere"))[1]
    unknown = EVENTS.format(room.project.id)

    def code(path: str, bearer: str | None = None) -> int:
        with web.socket(path, bearer, headers={"Origin": web.origin}) as socket:
            return close_code(socket)

    path = EVENTS.format(run.id)
    assert code(path) == 4401
    assert code(path, "ilk_wrong") == 4401
    assert code(path, stranger) == 4404
    assert code(path, narrow) == 4404
    assert code(unknown, token) == 4404
    assert code(path.replace("after=0", "after=-1"), token) == 4400
    assert code(path.replace("after=0", "after=" + "9" * 99), token) == 4400


REVOCATIONS: dict[str, tuple[int, Callable[[Room, User, Run], Any]]] = {
    "logged out": (4401, lambda room, user, run: session_of(user).delete()),
    "session expired": (4401, lambda room, user, run: expire(session_of(user))),
    "inactive": (4401, lambda room, user, run: user_rows(user).update(is_active=False)),
    "new password": (4401, lambda room, user, run: new_password(user)),
    "role removed": (4403, lambda room, user, run: Membership.objects.filter(user=user).delete()),
    "user deleted": (4401, lambda room, user, run: user.delete()),
}


def test_j2_an_open_socket_ends_with_what_let_it_open(web: Web, room: Room) -> None:
    run = room.run("running")
    people = {name: User.objects.create_user(name.replace(" ", "-")) for name in REVOCATIONS}
    for user in people.values():
        Membership.objects.create(project=room.project, user=user, role="viewer")
    still = threading.Event()
    writer = threading.Thread(target=_keep_writing, args=(run, still))

    with ExitStack() as opened:
        sockets = {
            name: opened.enter_context(by_cookie(web, run, user)) for name, user in people.items()
        }
        writer.start()
        for socket in sockets.values():
            received(socket, 1)
        for name, (_, revoke) in REVOCATIONS.items():
            revoke(room, people[name], run)
        codes = {name: close_code(socket) for name, socket in sockets.items()}
    still.set()
    writer.join()

    assert codes == {name: code for name, (code, _) in REVOCATIONS.items()}
    with by_cookie(web, run, people["role removed"]) as socket:
        assert close_code(socket) == 4404


def test_j2_a_run_that_moves_away_takes_its_watchers_with_it(
    web: Web, room: Room, token: str
) -> None:
    run = room.run("running")
    elsewhere = project("far-away")

    with web.run_socket(run, token) as socket:
        emit(run, deltas(1))
        received(socket, 1)
        Run.objects.filter(id=run.id).update(project=elsewhere)
        assert close_code(socket) == 4403


def test_j2_a_revoked_token_ends_socket_and_stream_even_when_idle(
    web: Web, room: Room, token: str
) -> None:
    run = room.run("running")
    emit(run, deltas(1))

    with web.run_socket(run, token) as socket, web.sse(run, token) as answer:
        received(socket, 1)
        events = sse_events(answer)
        next(events)
        ApiToken.objects.update(revoked_at=clock.now())
        assert close_code(socket) == 4401
        assert list(events) == []


def test_changing_the_password_in_a_tab_does_not_log_that_tab_out(web: Web, room: Room) -> None:
    run = room.run("running")
    emit(run, deltas(1))
    old = Client()
    old.force_login(room.ana)

    with by_cookie(web, run, room.ana) as socket:
        received(socket, 1)
        before = Session.objects.count()
        new_password(room.ana)
        assert close_code(socket) == 4401

    assert Session.objects.count() == before


def test_the_inbox_tells_ids_and_counts_on_each_change(web: Web, room: Room) -> None:
    run = room.run("interrupted")
    browser = Client()
    browser.force_login(room.bo)
    cookie = f"sessionid={browser.cookies['sessionid'].value}"

    with web.socket("/ws/inbox/", headers={"Cookie": cookie, "Origin": web.origin}) as socket:
        assert _inbox(socket) == (0, [])
        asked = interrupt(tool_call(run))
        assert _inbox(socket) == (1, [str(asked.id)])


def _inbox(socket: ClientConnection) -> tuple[int, list[str]]:
    while True:
        message = json.loads(socket.recv(8))
        if message["type"] == "inbox":
            return message["open"], message["ids"]


def session_of(user: User) -> Session:
    mine = [s for s in Session.objects.all() if s.get_decoded().get(SESSION_KEY) == str(user.pk)]
    return mine[0]


def expire(session: Session) -> None:
    session.expire_date = clock.now()
    session.save()


def user_rows(user: User) -> Any:
    return User.objects.filter(pk=user.pk)


def new_password(user: User) -> None:
    user.set_password("other")
    user.save()


def _keep_writing(run: Run, enough: threading.Event) -> None:
    while not enough.wait(0.2):
        emit(run, deltas(1))
    connections.close_all()

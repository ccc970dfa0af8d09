"""Without a database the API says so, and sockets ask to come back."""

from __future__ import annotations

import time
from collections.abc import Iterator

import httpx
import pytest
from websockets.exceptions import ConnectionClosed

from tests.conftest import environment
from tests.live.web import Web

RUN = "01935b7e-0000-7000-8000-000000000000"


@pytest.fixture(scope="module")
def orphan_web(django_db_setup: None) -> Iterator[Web]:
    """A web process whose database is not there."""
    web = Web({**environment(), "DATABASE_URL": "postgresql://nobody@/nothing?host=/nowhere"})
    yield web
    web.stop()


@pytest.mark.parametrize("path", ["/runs", f"/runs/{RUN}/events"])
def test_the_api_answers_503(orphan_web: Web, path: str) -> None:
    started = time.monotonic()

    answer = httpx.get(
        f"{orphan_web.origin}/api/v1{path}", headers={"Authorization": "Bearer ilk_x"}, timeout=20
    )

    assert time.monotonic() - started < 15
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert int(answer.headers["Retry-After"]) > 0
    assert "/nowhere" not in answer.text


def test_a_socket_is_asked_to_come_back(orphan_web: Web) -> None:
    path = f"/api/v1/ws/runs/{RUN}/?after=0"

    with orphan_web.socket(path, "ilk_x") as socket, pytest.raises(ConnectionClosed) as closed:
        socket.recv(20)

    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4503

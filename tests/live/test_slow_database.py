"""One slow query holds up nobody else, and sockets do not cost connections."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack

import httpx
import pytest
from django.conf import settings
from django.db import connection, connections, transaction

from runtime_core.models import ApiToken
from tests.api.room import Room
from tests.live.web import Web, deltas, emit, received, stored, wait_until

SOCKETS = 50
PIECES = 8


def connections_of_web() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'interlock-web'"
            " AND datname = current_database()"
        )
        return int(cursor.fetchone()[0])


def blocked() -> int:
    """Queries of the web process that wait for a lock."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'interlock-web'"
            " AND datname = current_database() AND wait_event_type = 'Lock'"
        )
        return int(cursor.fetchone()[0])


@pytest.mark.race
def test_c7_one_slow_query_does_not_stall_other_sockets(web: Web, room: Room, token: str) -> None:
    run, slow = room.run("running"), room.run("running")
    answers: list[int] = []

    def ask_slowly() -> None:
        """The checkpoints of a run: their table is locked."""
        headers = {"Authorization": f"Bearer {token}"}
        url = f"{web.origin}/api/v1/runs/{slow.id}/checkpoints"
        answers.append(httpx.get(url, headers=headers, timeout=30).status_code)

    locked, let_go = threading.Event(), threading.Event()

    def lock() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("LOCK TABLE checkpoint, interrupt IN ACCESS EXCLUSIVE MODE")
            locked.set()
            let_go.wait(20)
        connections.close_all()

    locker = threading.Thread(target=lock)
    asking = [threading.Thread(target=ask_slowly) for _ in range(2)]
    with ExitStack() as opened:
        sockets = [opened.enter_context(web.run_socket(run, token)) for _ in range(SOCKETS)]
        locker.start()
        try:
            assert locked.wait(10)
            for one in asking:
                one.start()
            # A run's page reads its interrupts to show them: on a thread that the other sockets do without.
            page = opened.enter_context(web.socket(f"/ws/runs/{slow.id}/", token))
            emit(slow, deltas(1))
            wait_until(lambda: blocked() >= 1)
            delays = []
            for piece in range(1, PIECES + 1):
                emit(run, deltas(1))
                began = time.monotonic()
                for socket in sockets:
                    received(socket, piece)
                delays.append(time.monotonic() - began)
                assert not let_go.is_set()
            late = opened.enter_context(web.run_socket(run, token))
            assert received(late, PIECES) == stored(run), "and who comes now is served, too"
            assert sorted(delays)[PIECES // 2] < 2
            assert connections_of_web() <= settings.WEB_POOL_SIZE
        finally:
            for one in asking:
                one.join(10)
            let_go.set()
            locker.join()
        page.close()
    assert set(answers) == {503}, (
        "a query that waits too long is cut off, and its client told to come back"
    )


def test_c7_many_connects_leave_no_connection_behind(web: Web, room: Room) -> None:
    run = room.run("running")
    _, token = ApiToken.issue(room.ana)
    emit(run, deltas(1))
    for _ in range(12):
        with ExitStack() as opened:
            sockets = [opened.enter_context(web.run_socket(run, token)) for _ in range(10)]
            for socket in sockets:
                received(socket, 1)
        assert connections_of_web() <= settings.WEB_POOL_SIZE

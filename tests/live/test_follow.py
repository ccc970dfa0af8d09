"""Following a run: what was, then what comes, each event once and in order, whatever breaks."""

from __future__ import annotations

import json
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from django.db import connection, connections, transaction

from runtime_core import transitions
from runtime_core.models import Run
from runtime_core.transitions import NewEvent
from tests.api.room import Api, Room
from tests.live.web import (
    Web,
    deltas,
    emit,
    finish,
    received,
    sse_events,
    stored,
)


def test_a_socket_replays_and_goes_on_live(web: Web, room: Room, token: str) -> None:
    run = room.run("running")
    emit(run, deltas(5))

    with web.run_socket(run, token, after=2) as socket:
        replayed = received(socket, 5)
        emit(run, deltas(3))
        live = received(socket, 8)

    assert replayed + live == stored(run)[2:]


def test_c2_events_of_another_process_arrive_at_once(web: Web, room: Room, token: str) -> None:
    run = room.run("running")
    delays = []

    with web.run_socket(run, token) as socket:
        emit(run, deltas(1))
        received(socket, 1)
        for seq in range(2, 12):
            started = time.monotonic()
            emit(run, deltas(1))
            received(socket, seq)
            delays.append(time.monotonic() - started)

    assert sorted(delays)[5] < 0.2


@pytest.mark.parametrize("way", ["socket", "sse"])
def test_c4_cut_and_resumed_at_random_points_nothing_is_doubled_or_lost(
    web: Web, room: Room, token: str, way: str
) -> None:
    run = room.run("running")
    chance = random.Random(4)
    emit(run, deltas(60))
    writer = threading.Thread(target=_write_and_finish, args=(run, 140))
    writer.start()
    seen: list[dict[str, Any]] = []
    other_tab = ThreadPoolExecutor(1).submit(_until_done, web, run, token)

    for _ in range(10):
        seen += _some(web, run, token, way, len(seen), chance.randint(1, 15))
    seen += _some(web, run, token, way, len(seen), 10_000)
    writer.join()

    assert seen == stored(run)
    assert "".join(e["data"]["text"] for e in seen if e["type"] == "text_delta") == "ha" * 200
    assert other_tab.result(20) == seen


def test_c1_a_client_that_pauses_gets_everything_without_reload(
    web: Web, room: Room, token: str
) -> None:
    run = room.run("running")
    text = "x" * 2_000

    with web.run_socket(run, token, max_queue=16) as socket:
        emit(run, deltas(1))
        received(socket, 1)
        for _ in range(20):
            emit(run, deltas(100, text))
        time.sleep(2)  # the pause itself: nobody reads while the server sends
        finish(run)
        rest = received(socket, 2_002)

    assert [event["seq"] for event in rest] == list(range(2, 2_003))
    assert rest[-1]["type"] == "done"


def test_c5_events_of_a_slow_transaction_are_not_skipped(web: Web, room: Room, token: str) -> None:
    run = room.run("running")
    written = threading.Event()

    def slowly() -> None:
        with transaction.atomic():
            transitions.tell(run.id, deltas(1, "slow"))
            written.set()
            time.sleep(1)  # the transaction that stays open is what is tested
        connections.close_all()

    with web.run_socket(run, token) as socket:
        slow = threading.Thread(target=slowly)
        slow.start()
        written.wait(5)
        emit(run, deltas(1, "fast"))
        slow.join()
        events = received(socket, 2)

    assert [event["data"]["text"] for event in events] == ["slow", "fast"]
    assert events == stored(run)


def test_c5_many_writers_leave_no_hole_and_a_rolled_back_one_stalls_nobody(
    web: Web, room: Room, token: str
) -> None:
    run = room.run("running")

    def write(number: int) -> None:
        for _ in range(50):
            emit(run, deltas(10, str(number)))
            _roll_back(run)
        connections.close_all()

    with web.run_socket(run, token) as socket, ThreadPoolExecutor(8) as writers:
        jobs = [writers.submit(write, number) for number in range(8)]
        events = received(socket, 4_000, within_s=50)
        for job in jobs:
            job.result()

    assert [event["seq"] for event in events] == list(range(1, 4_001))
    assert events == stored(run)


def test_c8_each_event_arrives_when_it_is_written(web: Web, room: Room, token: str) -> None:
    run = room.run("running")
    written: list[float] = []
    arrived: list[float] = []

    with web.sse(run, token, headers={"Accept-Encoding": "gzip, br"}) as answer:
        assert answer.headers["Content-Encoding"] == "identity"
        assert answer.headers["X-Accel-Buffering"] == "no"
        assert "no-cache" in answer.headers["Cache-Control"]
        writer = threading.Thread(target=_write_one_by_one, args=(run, written))
        writer.start()
        for _ in sse_events(answer):
            arrived.append(time.monotonic())
    writer.join()

    assert len(arrived) == len(written) == 7
    assert max(b - a for a, b in zip(written, arrived, strict=True)) < 0.5


def test_a_stream_ends_after_the_last_done_of_a_retried_run(
    web: Web, room: Room, token: str
) -> None:
    run = room.run("running")
    emit(run, [NewEvent("done", {"status": "failed", "output": None})])
    emit(run, deltas(2))

    with web.sse(run, token) as answer:
        events = sse_events(answer)
        first = [next(events) for _ in range(3)]
        finish(run)
        assert [event["type"] for event in events] == ["done"]

    assert [event["type"] for event in first] == ["done", "text_delta", "text_delta"]


def test_a_stream_of_an_ended_run_ends(web: Web, room: Room, token: str) -> None:
    run = room.run("running")
    emit(run, deltas(2))
    finish(run)

    with web.sse(run, token) as answer:
        assert [event["seq"] for event in sse_events(answer)] == [1, 2, 3]
    with web.sse(run, token, headers={"Last-Event-ID": "3"}) as answer:
        assert list(sse_events(answer)) == []


def test_last_event_id_wins_over_after(web: Web, room: Room, token: str) -> None:
    run = room.run("running")
    emit(run, deltas(5))
    finish(run)

    with web.sse(run, token, after=0, headers={"Last-Event-ID": "4"}) as answer:
        assert [event["seq"] for event in sse_events(answer)] == [5, 6]


def test_a_place_ahead_of_the_run_waits_for_it(web: Web, room: Room, token: str) -> None:
    run = room.run("running")
    emit(run, deltas(1))

    with web.run_socket(run, token, after=3) as socket:
        emit(run, deltas(2))
        emit(run, deltas(2))
        events = received(socket, 5)

    assert [event["seq"] for event in events] == [4, 5]


def test_errors_of_a_stream_are_problems(web: Web, room: Room, token: str) -> None:
    run = room.run()
    headers = {"Accept": "text/event-stream", "Authorization": f"Bearer {token}"}
    url = f"{web.origin}/api/v1/runs/{run.id}/events"

    bad = httpx.get(url, headers={**headers, "Last-Event-ID": "x"})
    nobody = httpx.get(url, headers={"Accept": "text/event-stream"})

    assert (bad.status_code, bad.json()["code"]) == (422, "invalid_input")
    assert (nobody.status_code, nobody.json()["code"]) == (401, "unauthenticated")


def test_lost_database_connections_lose_no_event(web: Web, room: Room, token: str) -> None:
    run = room.run("running")

    with web.run_socket(run, token) as socket, web.sse(run, token) as answer:
        streamed = sse_events(answer)
        for round_ in range(1, 6):
            emit(run, deltas(4))
            _cut_connections_of_web()
            received(socket, round_ * 4)
        finish(run)
        received(socket, 21)
        events = list(streamed)

    assert events == stored(run)


def test_many_watchers_do_not_cost_many_connections(web: Web, room: Room, token: str) -> None:
    run = room.run("running")
    with ExitStack() as opened:
        sockets = [opened.enter_context(web.run_socket(run, token)) for _ in range(60)]
        emit(run, deltas(5))
        for socket in sockets:
            assert received(socket, 5) == stored(run)
        connected = _connections_of_web()

    assert connected <= 20


def test_the_api_answers_while_streams_are_open(web: Web, room: Room, token: str) -> None:
    run = room.run("running")
    url = f"{web.origin}/api/v1/runs/{run.id}"
    with ExitStack() as opened:
        for _ in range(25):
            stream = opened.enter_context(web.sse(run, token))
            next(stream.iter_lines())
        answers = [httpx.get(url, headers=Api(room.ana).headers, timeout=4) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [200, 200, 200]


def _write_and_finish(run: Run, count: int) -> None:
    for start in range(0, count, 5):
        emit(run, deltas(5))
        time.sleep(0.02 if start % 3 else 0)  # the model's pace
    finish(run)
    connections.close_all()


def _some(web: Web, run: Run, token: str, way: str, after: int, count: int) -> list[dict[str, Any]]:
    """Up to so many events from there on, or until the run is done; then the line is cut."""
    events: list[dict[str, Any]] = []
    if way == "sse":
        with web.sse(run, token, headers={"Last-Event-ID": str(after)} if after else {}) as answer:
            for event in sse_events(answer):
                events.append(event)
                if len(events) == count:
                    break
        return events
    with web.run_socket(run, token, after) as socket:
        while len(events) < count and not (events and events[-1]["type"] == "done"):
            if after + len(events) == Run.objects.get(id=run.id).last_seq and _over(run):
                break
            events += received(socket, after + len(events) + 1)
    return events


def _over(run: Run) -> bool:
    return Run.objects.get(id=run.id).state.ended


def _until_done(web: Web, run: Run, token: str) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    with web.run_socket(run, token) as socket:
        while not events or events[-1]["type"] != "done":
            event = json.loads(socket.recv(20))
            event.pop("ts")
            events.append(event)
    return events


def _write_one_by_one(run: Run, written: list[float]) -> None:
    for _ in range(6):
        emit(run, deltas(1))
        written.append(time.monotonic())
        time.sleep(0.6)  # the producer's pace
    finish(run)
    written.append(time.monotonic())
    connections.close_all()


def _connections_of_web() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'interlock-web'"
        )
        return int(cursor.fetchone()[0])


def _cut_connections_of_web() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'interlock-web'"
        )


class _Changed(Exception):
    pass


def _roll_back(run: Run) -> None:
    try:
        with transaction.atomic():
            transitions.tell(run.id, deltas(3, "never"))
            raise _Changed
    except _Changed:
        pass

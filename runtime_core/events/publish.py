"""Tells web processes over Valkey that a run has new events: a hint only, which nobody may depend on."""

from __future__ import annotations

import functools
import json
import logging
import os
import threading
import uuid
from collections.abc import Sequence
from functools import partial

import redis
from django.conf import settings
from django.db import connection
from redis.backoff import NoBackoff
from redis.retry import Retry

from runtime_core import clock
from runtime_core.transactions import outside

CHANNEL = "interlock:hints"

# Connecting and sending each get this long, so a hint costs at most twice of it.
_TIMEOUT_S = 0.1
# After a failure nobody tries for this long: a dead broker must not cost each step 0.2 s.
_REST_S = 1.0

_log = logging.getLogger(__name__)
_resting_until = 0.0


def announce(run_id: uuid.UUID, last_seq: int, project_id: uuid.UUID, inbox: bool = False) -> None:
    """Hint that `run_id` has events up to `last_seq`, and whether its project's inbox changed.

    Inside a transaction it waits for the commit. Never raises, takes at most 0.2 s; who misses the
    hint finds the rows by polling.
    """
    send = partial(_publish, _hint(run_id, last_seq, project_id, inbox))
    if connection.in_atomic_block:
        connection.on_commit(send, robust=True)
    else:
        send()


def announce_soon(
    run_id: uuid.UUID, last_seq: int, project_id: uuid.UUID, inbox: bool = False
) -> None:
    """The same from a thread of its own, outside of any transaction: who takes the next step does not wait for it."""
    _later().add(run_id, last_seq, project_id, inbox)


class _Later:
    """Hints that are due, of each run only the newest, and the thread that sends them."""

    def __init__(self) -> None:
        self._due: dict[uuid.UUID, tuple[int, uuid.UUID, bool]] = {}
        self._state = threading.Condition()
        threading.Thread(target=self._run, name="interlock-hints", daemon=True).start()

    def add(self, run_id: uuid.UUID, last_seq: int, project_id: uuid.UUID, inbox: bool) -> None:
        with self._state:
            _, _, inbox_changed = self._due.get(run_id, (0, project_id, False))
            self._due[run_id] = (last_seq, project_id, inbox or inbox_changed)
            self._state.notify()

    def _run(self) -> None:
        while True:
            with self._state:
                self._state.wait_for(lambda: self._due)
                due, self._due = self._due, {}
            _publish(*(_hint(run_id, *what) for run_id, what in due.items()))


@functools.cache
def _later() -> _Later:
    return _Later()


# The thread is not there any more in a child.
os.register_at_fork(after_in_child=_later.cache_clear)


def _hint(run_id: uuid.UUID, last_seq: int, project_id: uuid.UUID, inbox: bool) -> str:
    return json.dumps(
        {"run": str(run_id), "seq": last_seq, "project": str(project_id), "inbox": inbox}
    )


def _publish(*hints: str) -> None:
    global _resting_until
    if clock.monotonic() < _resting_until:
        return
    try:
        with outside("hint"):
            _send(hints)
    except Exception as error:  # noqa: BLE001 - a hint must never cost a run; the client raises ValueError too
        _resting_until = clock.monotonic() + _REST_S
        _log.warning("no hint sent, watchers will poll: %s", error)


def _send(hints: Sequence[str]) -> None:
    """One write and one read for all of them; the client's own way costs three times as much."""
    pool = _client(settings.REDIS_URL).connection_pool
    link = pool.get_connection()
    try:
        commands = [("PUBLISH", CHANNEL, hint) for hint in hints]
        packed = link.pack_commands(commands)  # type: ignore[no-untyped-call]
        link.send_packed_command(packed)  # type: ignore[no-untyped-call]
        for _ in hints:
            link.read_response()
    except BaseException:
        # What was not read would be taken for the answer to the next hint.
        link.disconnect()  # type: ignore[no-untyped-call]
        raise
    finally:
        pool.release(link)


@functools.cache
def _client(url: str) -> redis.Redis:
    return redis.Redis.from_url(
        url,
        socket_timeout=_TIMEOUT_S,
        socket_connect_timeout=_TIMEOUT_S,
        retry=Retry(NoBackoff(), 0),
        max_connections=64,
    )

"""Tells web processes over Valkey that a run has new events: a hint only, which nobody may depend on."""

from __future__ import annotations

import functools
import json
import os
import threading
import uuid
from functools import partial

from django.db import connection

from runtime_core import broker

CHANNEL = "interlock:hints"

# Hints of a busy run are collected for this long; what changes its status does not wait.
COLLECT_SECONDS = 0.02


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
        self._urgent = False
        self._collecting = False
        self._state = threading.Condition()
        threading.Thread(target=self._run, name="interlock-hints", daemon=True).start()

    def add(self, run_id: uuid.UUID, last_seq: int, project_id: uuid.UUID, inbox: bool) -> None:
        with self._state:
            _, _, inbox_changed = self._due.get(run_id, (0, project_id, False))
            self._due[run_id] = (last_seq, project_id, inbox or inbox_changed)
            self._urgent = self._urgent or inbox
            # Waking a thread that would go on collecting costs each step more than the rest of this.
            if inbox or not self._collecting:
                self._state.notify()

    def _run(self) -> None:
        while True:
            with self._state:
                self._state.wait_for(lambda: self._due)
                due, self._due, self._urgent = self._due, {}, False
            _publish(*(_hint(run_id, *what) for run_id, what in due.items()))
            with self._state:
                self._collecting = True
                self._state.wait_for(lambda: self._urgent, COLLECT_SECONDS)
                self._collecting = False


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
    broker.tell("hint", [("PUBLISH", CHANNEL, hint) for hint in hints])

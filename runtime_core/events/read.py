"""Reads events after a cursor. Each comes as a frame that is serialised once, whoever watches."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, NamedTuple, cast

from django.db import connection

from runtime_core import ports
from runtime_core.states import RunStatus

PAGE_CHARACTERS = 1_000_000

# `data::text` is already JSON: it is put into the frame as it is, and parsed only where a page needs it.
# A page ends where its texts exceed the budget, but always holds at least one event.
_AFTER = """
    WITH page AS MATERIALIZED (
        SELECT seq, type, ts, step, data::text AS data FROM event
        WHERE run_id = %s AND seq > %s ORDER BY seq LIMIT %s
    ), sized AS (
        SELECT *, sum(length(data)) OVER (ORDER BY seq) - length(data) AS before FROM page
    )
    SELECT seq, type, ts, step, data FROM sized WHERE before < %s ORDER BY seq
"""
_HEADS = "SELECT id, last_seq, status FROM run WHERE id = ANY(%s)"

_INBOX_MARKS = """
    SELECT project_id, count(*), max(created_at) FROM interrupt
    WHERE status = 'open' AND project_id = ANY(%s) GROUP BY project_id
"""


class Head(NamedTuple):
    """How far a run has come: its newest event and its status, read together."""

    last_seq: int
    status: RunStatus


class InboxMark(NamedTuple):
    """What changes when a project's open interrupts do: how many they are, and the newest one's time."""

    open: int
    newest: dt.datetime


class Frame:
    """One stored event, with its outgoing texts made at most once."""

    def __init__(
        self, seq: int, type: str, ts: dt.datetime, step: int | None, data_text: str
    ) -> None:
        self.seq = seq
        self.type = type
        self.ts = ts
        self.step = step
        self._data_text = data_text
        self._rendered: dict[str, str] = {}

    @cached_property
    def json(self) -> str:
        """The event as one line of JSON: `{seq, type, ts, step, data}`."""
        step = "null" if self.step is None else self.step
        head = f'{{"seq":{self.seq},"type":"{self.type}","ts":"{_utc(self.ts)}","step":{step}'
        return f'{head},"data":{self._data_text}}}'

    @cached_property
    def sse(self) -> str:
        """The event as one server-sent event."""
        return f"id: {self.seq}\nevent: {self.type}\ndata: {self.json}\n\n"

    @cached_property
    def data(self) -> dict[str, Any]:
        """The event's data."""
        return cast(dict[str, Any], json.loads(self._data_text))

    def rendered(self, name: str, render: Callable[[Frame], str]) -> str:
        """What `render` makes of this frame; kept under `name` for the next who watches."""
        if name not in self._rendered:
            self._rendered[name] = render(self)
        return self._rendered[name]

    @property
    def size(self) -> int:
        """About how many characters it holds in memory."""
        return len(self._data_text)


def after(run_id: uuid.UUID, seq: int, limit: int, budget: int = PAGE_CHARACTERS) -> list[Frame]:
    """Up to `limit` events of the run that follow `seq`, in order; fewer where they are long."""
    with connection.cursor() as cursor:
        cursor.execute(_AFTER, [run_id, seq, limit, budget])
        rows = cursor.fetchall()
    shown = ports.redactor().reader(run_id)
    if shown is not None:
        rows = [(*row[:-1], _passed(row[-1], shown)) for row in rows]
    return [Frame(*row) for row in rows]


def _passed(data_text: str, shown: Callable[[Any], Any]) -> str:
    data = json.loads(data_text)
    clean = shown(data)
    return data_text if clean == data else json.dumps(clean, ensure_ascii=False)


def heads(run_ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, Head]:
    """How far each of the runs has come; a run that is gone is missing."""
    with connection.cursor() as cursor:
        cursor.execute(_HEADS, [list(run_ids)])
        return {id_: Head(seq, RunStatus(status)) for id_, seq, status in cursor.fetchall()}


def inbox_marks(project_ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, InboxMark]:
    """The mark of each project that has open interrupts."""
    with connection.cursor() as cursor:
        cursor.execute(_INBOX_MARKS, [list(project_ids)])
        return {id_: InboxMark(count, newest) for id_, count, newest in cursor.fetchall()}


def _utc(ts: dt.datetime) -> str:
    return ts.astimezone(dt.UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")

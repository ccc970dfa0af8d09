"""One web process's view of what happens: one subscription, one read an event, any number of watchers.

    hint (Valkey) ─┐
    poll (4 Hz)  ──┴▶ Feed of a run: reads new rows once, keeps the newest few ──▶ Follower: a cursor a socket

A hint or a poll only wakes; rows come from the event table, each follower's by its own cursor. So a lost hint, a dead
Valkey or a slow socket loses nothing: who falls behind what the feed still holds reads the table itself.
"""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
import weakref
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import redis.asyncio as redis
from django.conf import settings
from django.db import DatabaseError, InterfaceError
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from runtime_core.db_threads import in_db_thread
from runtime_core.events import read
from runtime_core.events.publish import CHANNEL
from runtime_core.events.read import Frame
from runtime_core.limits import limits

POLL_S = 0.25
INBOX_POLL_S = 1.0
RETRY_S = 0.5
SUBSCRIBE_AGAIN_S = 1.0
TAIL_CHARACTERS = 2_000_000

DATABASE_ERRORS = (DatabaseError, InterfaceError)

_log = logging.getLogger(__name__)


class Follower:
    """One watcher's place in one run."""

    def __init__(self, feed: Feed, after: int) -> None:
        self._feed = feed
        self._woken = asyncio.Event()
        self._page = limits().socket_queue
        self.cursor = after

    async def batch(self, wait_s: float) -> Sequence[Frame]:
        """The next events after the cursor, in order, at most a page; empty if none came within `wait_s`.

        The cursor stands behind what was returned.
        """
        self._woken.clear()
        frames = await self._next()
        if not frames:
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._woken.wait()
                frames = await self._next()
        if frames:
            self.cursor = frames[-1].seq
        return frames

    def wake(self) -> None:
        self._woken.set()

    async def _next(self) -> Sequence[Frame]:
        if self._feed.holds_after(self.cursor):
            return self._feed.newer_than(self.cursor)
        run_id = self._feed.run_id
        try:
            frames = await in_db_thread(read.after, run_id, self.cursor, self._page)
        except DATABASE_ERRORS as error:
            _log.warning("events of %s could not be read, trying again: %s", run_id, error)
            await asyncio.sleep(RETRY_S)
            return []
        self._adapt(frames)
        return frames

    def _adapt(self, frames: Sequence[Frame]) -> None:
        # Asking for more than a page can carry would make the database render it for nothing.
        if frames:
            average = sum(frame.size for frame in frames) // len(frames) + 1
            self._page = min(max(read.PAGE_CHARACTERS // average, 16), limits().events_page)


class Feed:
    """The newest events of one watched run, read and serialised once for all its followers."""

    def __init__(self, run_id: uuid.UUID) -> None:
        self.run_id = run_id
        self.followers: set[Follower] = set()
        self._tail: list[Frame] = []
        self._characters = 0
        # Everything in (_from, _to] is in the tail; nothing is until the first look at the run.
        self._from: int | None = None
        self._to = 0
        self._known = 0
        self._filling: asyncio.Task[None] | None = None

    def holds_after(self, cursor: int) -> bool:
        """True if whatever comes after `cursor` is, or will be, in the tail."""
        return self._from is not None and cursor >= self._from

    def newer_than(self, cursor: int) -> Sequence[Frame]:
        """What the tail holds after `cursor`."""
        start = bisect_right(self._tail, cursor, key=lambda frame: frame.seq)
        return self._tail[start:]

    def notice(self, last_seq: int) -> None:
        """Take note that events up to `last_seq` are committed, and fetch them if they are new."""
        if self._from is None:
            # What was there before anybody watched is read by those who need it.
            self._from = self._to = self._known = last_seq
            self._wake_all()
        self._known = max(self._known, last_seq)
        if self._known > self._to and self._filling is None:
            self._filling = asyncio.create_task(self._fill())

    def stop(self) -> None:
        if self._filling:
            self._filling.cancel()

    async def _fill(self) -> None:
        try:
            while self._known > self._to:
                frames = await in_db_thread(read.after, self.run_id, self._to, limits().events_page)
                if not frames:
                    self._known = self._to
                self._extend(frames)
        except DATABASE_ERRORS as error:
            _log.warning("new events of %s could not be read yet: %s", self.run_id, error)
            self._known = self._to  # the next poll tries again
        finally:
            self._filling = None

    def _extend(self, frames: list[Frame]) -> None:
        if not frames:
            return
        self._tail.extend(frames)
        self._characters += sum(frame.size for frame in frames)
        self._to = frames[-1].seq
        self._trim()
        self._wake_all()

    def _trim(self) -> None:
        drop = max(len(self._tail) - limits().socket_queue, 0)
        characters = self._characters - sum(frame.size for frame in self._tail[:drop])
        while characters > TAIL_CHARACTERS and drop < len(self._tail) - 1:
            characters -= self._tail[drop].size
            drop += 1
        if drop:
            self._from = self._tail[drop - 1].seq
            del self._tail[:drop]
            self._characters = characters

    def _wake_all(self) -> None:
        for follower in self.followers:
            follower.wake()


class InboxWatcher:
    """Woken when something in one of its projects' inboxes may have changed."""

    def __init__(self, projects: Collection[uuid.UUID]) -> None:
        self.projects = frozenset(projects)
        self._woken = asyncio.Event()

    async def changed(self, wait_s: float) -> bool:
        """True as soon as there may be news, False after `wait_s` seconds without."""
        try:
            await asyncio.wait_for(self._woken.wait(), wait_s)
        except TimeoutError:
            return False
        self._woken.clear()
        return True

    def wake(self) -> None:
        self._woken.set()


class Hub:
    """Everything that is watched on one event loop. Its tasks live while somebody watches."""

    def __init__(self) -> None:
        self._feeds: dict[uuid.UUID, Feed] = {}
        self._inboxes: set[InboxWatcher] = set()
        self._inbox_seen: dict[uuid.UUID, read.InboxMark] = {}
        self._tasks: list[asyncio.Task[None]] = []
        # The loop itself holds tasks weakly: one that is still closing its connection would be collected.
        self._ending: set[asyncio.Task[None]] = set()

    @contextmanager
    def follow(self, run_id: uuid.UUID, after: int) -> Iterator[Follower]:
        """A place in the run right behind event `after`, kept while the context is open."""
        feed = self._feeds.setdefault(run_id, Feed(run_id))
        follower = Follower(feed, after)
        feed.followers.add(follower)
        self._start()
        try:
            yield follower
        finally:
            feed.followers.discard(follower)
            if not feed.followers and self._feeds.get(run_id) is feed:
                feed.stop()
                del self._feeds[run_id]
            self._stop_if_idle()

    @contextmanager
    def watch_inbox(self, projects: Collection[uuid.UUID]) -> Iterator[InboxWatcher]:
        """A watcher of these projects' inboxes, kept while the context is open."""
        watcher = InboxWatcher(projects)
        self._inboxes.add(watcher)
        self._start()
        try:
            yield watcher
        finally:
            self._inboxes.discard(watcher)
            self._stop_if_idle()

    def _start(self) -> None:
        if not self._tasks:
            self._inbox_seen.clear()
            loops = (self._listen, self._poll_runs, self._poll_inboxes)
            self._tasks = [asyncio.create_task(loop()) for loop in loops]

    def _stop_if_idle(self) -> None:
        if self._feeds or self._inboxes:
            return
        for task in self._tasks:
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
            task.cancel()
        self._tasks = []

    # ── Hints ───────────────────────────────────────────────────────────────────────────────────

    async def _listen(self) -> None:
        while True:
            try:
                await self._take_hints()
            except (RedisError, OSError, ValueError) as error:
                _log.warning("no hints from Valkey, polling instead: %s", error)
            await asyncio.sleep(SUBSCRIBE_AGAIN_S)

    async def _take_hints(self) -> None:
        client = redis.Redis.from_url(
            settings.REDIS_URL, socket_connect_timeout=1.0, retry=Retry(NoBackoff(), 0)
        )
        async with client, client.pubsub(ignore_subscribe_messages=True) as subscription:
            await subscription.subscribe(CHANNEL)
            async for message in subscription.listen():
                self._take_hint(message["data"])

    def _take_hint(self, payload: bytes) -> None:
        try:
            hint: dict[str, Any] = json.loads(payload)
            run_id, project_id = uuid.UUID(hint["run"]), uuid.UUID(hint["project"])
            last_seq, inbox = int(hint["seq"]), bool(hint["inbox"])
        except (ValueError, KeyError, TypeError):
            _log.warning("a hint could not be read and was dropped")
            return
        if feed := self._feeds.get(run_id):
            feed.notice(last_seq)
        if inbox:
            self._wake_inboxes({project_id})

    # ── Polls: the safety net, and all there is while Valkey is away ────────────────────────────

    async def _poll_runs(self) -> None:
        while True:
            if self._feeds:
                await self._poll_heads()
            await asyncio.sleep(POLL_S)

    async def _poll_heads(self) -> None:
        try:
            heads = await in_db_thread(read.heads, list(self._feeds))
        except DATABASE_ERRORS as error:
            _log.warning("watched runs could not be looked at, trying again: %s", error)
            await asyncio.sleep(RETRY_S)
            return
        for run_id, head in heads.items():
            if feed := self._feeds.get(run_id):
                feed.notice(head.last_seq)

    async def _poll_inboxes(self) -> None:
        while True:
            if self._inboxes:
                await self._compare_inboxes()
            await asyncio.sleep(INBOX_POLL_S)

    async def _compare_inboxes(self) -> None:
        projects = frozenset[uuid.UUID]().union(*(watcher.projects for watcher in self._inboxes))
        try:
            marks = await in_db_thread(read.inbox_marks, projects)
        except DATABASE_ERRORS as error:
            _log.warning("inboxes could not be looked at, trying again: %s", error)
            await asyncio.sleep(RETRY_S)
            return
        changed = {id_ for id_ in projects if self._inbox_seen.get(id_) != marks.get(id_)}
        self._inbox_seen = marks
        self._wake_inboxes(changed)

    def _wake_inboxes(self, projects: set[uuid.UUID]) -> None:
        for watcher in self._inboxes:
            if watcher.projects & projects:
                watcher.wake()


_hubs: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = weakref.WeakKeyDictionary()


def hub() -> Hub:
    """The hub of the running event loop; a web process has one loop."""
    return _hubs.setdefault(asyncio.get_running_loop(), Hub())

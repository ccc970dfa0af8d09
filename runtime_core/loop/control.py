"""Notices, for every run that this process holds, that it must stop: cancelled, out of time, or no longer ours.

One thread a process renews all leases and reads all wishes; a signal over Valkey only makes it look at once.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import redis
import structlog
from django.conf import settings
from django.db import connection

from runtime_core import broker, clock, transitions
from runtime_core.limits import limits
from runtime_core.values import Claim

log = structlog.get_logger(__name__)

CHANNEL = "interlock:control"
# How long connections are kept while no run is held.
IDLE_SECONDS = 2.0
# The client raises a ValueError where a connection was closed while it read.
_BROKER_ERRORS = (redis.RedisError, OSError, ValueError)
# What overrules what: a lost lease forbids every write, so nothing else counts then.
_WEIGHT = {"shutdown": 1, "deadline": 2, "cancel": 3, "lost": 4}


class Hold:
    """One held run: `stop` is set as soon as its work must end, and `reason` says why."""

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self.stop = threading.Event()
        self.reason = ""
        self.pause = False
        self._lock = threading.Lock()

    @property
    def goes_on(self) -> bool:
        """False if somebody wants the run to stop, now or before its next step: nothing more is begun then."""
        return not (self.stop.is_set() or self.pause)

    def end(self, reason: str) -> None:
        """Ask the work to end; a weightier reason replaces a lighter one."""
        with self._lock:
            if _WEIGHT[reason] > _WEIGHT.get(self.reason, 0):
                self.reason = reason
        self.stop.set()


class Watch:
    """The thread that keeps this process's leases and notices wishes."""

    def __init__(self) -> None:
        self._holds: dict[uuid.UUID, Hold] = {}
        self._lock = threading.Lock()
        self._wanted = threading.Event()
        self._thread: threading.Thread | None = None
        self._shutting_down = False
        self.crowded = False
        """Somebody asked for a slot of this process and there was none."""

    @contextmanager
    def held(self, claim: Claim) -> Iterator[Hold]:
        """Watch over a claim while the block runs."""
        hold = Hold(claim)
        with self._lock:
            older = self._holds.get(claim.run_id)
            self._holds[claim.run_id] = hold
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._run, name="interlock-watch", daemon=True
                )
                self._thread.start()
        self._wanted.set()
        if older is not None:
            older.end("lost")  # this very process lost the run, and has claimed it anew
        if self._shutting_down:
            hold.end("shutdown")
        try:
            yield hold
        finally:
            with self._lock:
                if self._holds.get(claim.run_id) is hold:
                    del self._holds[claim.run_id]

    def shut_down(self) -> None:
        """Ask all held runs to be given back at their next safe point."""
        self._shutting_down = True
        for hold in self._held():
            hold.end("shutdown")

    @property
    def shutting_down(self) -> bool:
        return self._shutting_down

    def _held(self) -> list[Hold]:
        with self._lock:
            return list(self._holds.values())

    def _run(self) -> None:
        renewed_at = clock.monotonic()
        signal = _Signal()
        while True:
            holds = self._held()
            if not holds:
                self._rest(signal)
                renewed_at = clock.monotonic()
                continue
            # A run that is through within this time costs no look: its own commits read the wishes too.
            signal.wait(limits().cancel_poll_seconds)
            holds = self._held()
            if not holds:
                continue
            try:
                self._look(holds)
                if clock.monotonic() - renewed_at >= limits().heartbeat_seconds:
                    self._renew(holds)
                    renewed_at = clock.monotonic()
            except Exception as error:  # noqa: BLE001 - without this thread every lease would run out
                log.warning("watch.failed", error=type(error).__name__)
                connection.close()
            if clock.monotonic() - renewed_at > limits().self_fence_seconds:
                for hold in holds:
                    hold.end("lost")

    def _rest(self, signal: _Signal) -> None:
        """Wait for a run. Connections are kept for a moment: the next one mostly comes at once."""
        self._wanted.clear()
        if self._held() or self._wanted.wait(IDLE_SECONDS):
            return
        connection.close()
        signal.close()
        if not self._held():
            self._wanted.wait()

    def _look(self, holds: list[Hold]) -> None:
        by_run = {hold.claim.run_id: hold for hold in holds}
        for run_id, epoch, status, cancel, pause, late in transitions.wishes(list(by_run)):
            hold = by_run.pop(run_id)
            if epoch != hold.claim.epoch:
                hold.end("lost")
            elif status != "running":
                continue  # its own commit has just let it go
            elif cancel:
                hold.end("cancel")
            elif late:
                hold.end("deadline")
            hold.pause = pause
        for hold in by_run.values():
            hold.end("lost")  # the row is gone

    def _renew(self, holds: list[Hold]) -> None:
        ours = transitions.heartbeat([hold.claim for hold in holds])
        for hold in holds:
            # A run that let go by its own commit has no lease either, and is not held for longer than that.
            if hold.claim.run_id not in ours and hold in self._held():
                self._look([hold])


class _Signal:
    """Waits for a hint that somebody wishes something; without Valkey it is a plain sleep."""

    def __init__(self) -> None:
        self._pubsub: redis.client.PubSub | None = None

    def wait(self, seconds: float) -> None:
        try:
            if self._pubsub is None:
                client = redis.Redis.from_url(
                    settings.REDIS_URL, socket_timeout=2, socket_connect_timeout=1
                )
                self._pubsub = client.pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]
                self._pubsub.subscribe(CHANNEL)
            self._pubsub.get_message(timeout=seconds)
        except _BROKER_ERRORS:
            self.close()
            time.sleep(seconds)

    def close(self) -> None:
        pubsub, self._pubsub = self._pubsub, None
        if pubsub is not None:
            try:
                pubsub.close()
                pubsub.connection_pool.disconnect()
            except _BROKER_ERRORS:
                log.debug("watch.signal_close")


watch = Watch()


def signal(run_id: uuid.UUID) -> None:
    """Tell all workers to look at their runs' wishes now; best effort."""
    broker.tell("signal", [("PUBLISH", CHANNEL, str(run_id))])

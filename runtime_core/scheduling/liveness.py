"""Tells at once that a worker process is gone: each holds an advisory lock on a database session of its own.

A process that is killed loses the session, and with it the lock, in milliseconds: nobody waits for its leases to end.
That is safe because a claim raises the epoch: a worker that was only cut off finds its writes refused. Where a session
outlives its process (the host or the network is gone), the lease decides as before.
"""

from __future__ import annotations

import threading

import structlog
from django.db import Error as DatabaseError
from django.db import InterfaceError, connection

from runtime_core.limits import limits

log = structlog.get_logger(__name__)

LOCK_CLASS = 0x1A0C  # of the two-part advisory locks: any number that nothing else here uses
LOOK_SECONDS = 1.0
TAKE_AGAIN_SECONDS = 0.2

_REGISTER = """
INSERT INTO worker (name, slots, started_at, seen_at) VALUES (%s, %s, clock_timestamp(), clock_timestamp())
ON CONFLICT (name) DO UPDATE SET seen_at = clock_timestamp(), stopped_at = NULL
RETURNING id
"""
_SEEN = """
UPDATE worker SET seen_at = clock_timestamp(), missing_since = NULL
WHERE id = %s AND (missing_since IS NOT NULL OR seen_at < clock_timestamp() - make_interval(secs => %s))
"""
# A lock counts as lost when it was found free twice, and never right after a restart of the database: that takes the
# sessions of workers which live, and they need a moment to come back.
_DEAD = """
WITH held AS (
    SELECT objid::bigint FROM pg_locks
    WHERE locktype = 'advisory' AND classid = %(class)s AND objsubid = 2 AND granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
), marked AS (
    UPDATE worker SET missing_since = clock_timestamp()
    WHERE stopped_at IS NULL AND missing_since IS NULL AND id NOT IN (SELECT objid FROM held)
      AND pg_postmaster_start_time() < clock_timestamp() - make_interval(secs => %(restart)s)
)
SELECT DISTINCT worker.name FROM run_lease JOIN worker ON worker.name = run_lease.worker
WHERE worker.stopped_at IS NOT NULL
   OR (worker.missing_since < clock_timestamp() - make_interval(secs => %(grace)s)
       AND worker.id NOT IN (SELECT objid FROM held))
"""
_FORGET = """
DELETE FROM worker WHERE COALESCE(stopped_at, missing_since) < clock_timestamp() - interval '1 day'
"""


def dead_workers() -> list[str]:
    """Names of the workers that hold leases and are gone; these leases may be taken at once."""
    bounds = limits()
    with connection.cursor() as cursor:
        cursor.execute(
            _DEAD,
            {
                "class": LOCK_CLASS,
                "grace": bounds.liveness_grace_seconds,
                "restart": bounds.liveness_restart_seconds,
            },
        )
        names = [row[0] for row in cursor.fetchall()]
        cursor.execute(_FORGET)
    return names


class Liveness:
    """Holds this process's lock on a thread and a session of their own, and takes it again when the session breaks."""

    def __init__(self, worker: str, slots: int) -> None:
        self._worker = worker
        self._slots = slots
        self._held = threading.Event()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="interlock-alive", daemon=True)

    def start(self) -> None:
        """Begin; the lock is taken as soon as the database answers."""
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Wait for the lock; True if it is held, and others see that this process lives: only then it may claim."""
        return self._held.wait(seconds)

    def close(self) -> None:
        """Say that this process ends in order, and give the lock back."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join(5)

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                self._hold()
            except (DatabaseError, InterfaceError) as error:
                log.warning("liveness.lost", error=type(error).__name__)
            finally:
                self._held.clear()
                connection.close()
            self._ending.wait(TAKE_AGAIN_SECONDS)

    def _hold(self) -> None:
        """Take the lock and keep its session until it breaks or the process ends."""
        number = self._take()
        if number is None:
            return  # the session that broke is still there on the server's side
        self._held.set()
        while not self._ending.wait(LOOK_SECONDS):
            with connection.cursor() as cursor:
                cursor.execute(_SEEN, [number, limits().heartbeat_seconds])
                if cursor.rowcount == 0:
                    cursor.execute("SELECT 1 FROM worker WHERE id = %s", [number])
                    if cursor.fetchone() is None:
                        return  # somebody removed the row: register anew
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE worker SET stopped_at = clock_timestamp() WHERE id = %s", [number]
            )

    def _take(self) -> int | None:
        with connection.cursor() as cursor:
            cursor.execute(_REGISTER, [self._worker, self._slots])
            number = int(cursor.fetchone()[0])
            cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", [LOCK_CLASS, number])
            taken = bool(cursor.fetchone()[0])
            if taken:
                cursor.execute("UPDATE worker SET missing_since = NULL WHERE id = %s", [number])
        return number if taken else None

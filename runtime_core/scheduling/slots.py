"""The threads of a worker process that drive runs: bounded, apart from the threads that take Celery's messages.

A hint never waits behind a long run, and neither do the ticks that reconcile, expire and seal.
"""

from __future__ import annotations

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import structlog
from django.conf import settings
from django.db import Error as DatabaseError
from django.db import close_old_connections

from runtime_core.loop import places
from runtime_core.loop.control import watch
from runtime_core.loop.drive import advance
from runtime_core.scheduling import wake
from runtime_core.scheduling.listener import Listener
from runtime_core.scheduling.liveness import Liveness

log = structlog.get_logger(__name__)

ALIVE_SECONDS = 1.0


class Slots:
    """At most `size` runs at once. A thread that is done with one run takes any other that is due."""

    def __init__(self, size: int, worker: str) -> None:
        self._size = size
        self._worker = worker
        self._busy = 0
        self._missed = False
        self._lock = threading.Condition()
        self._alive = Liveness(worker, size)
        # The threads stay, and with them their database connections.
        self._threads = ThreadPoolExecutor(size, thread_name_prefix="interlock-run")

    def open(self) -> None:
        """Let everybody see that this process lives; nothing is claimed before that."""
        places.hint_with(wake.send)
        self._alive.start()
        Listener(self.wait_for_one, self.offer).start()

    def wait_for_one(self, seconds: float) -> bool:
        """True as soon as a slot is free; False if none is within so long."""
        with self._lock:
            return self._lock.wait_for(lambda: self._busy < self._size, seconds)

    def offer(self, run_id: uuid.UUID) -> bool:
        """Drive this run now if a slot is free; else the next free slot looks for what is due. True if one was free."""
        with self._lock:
            if watch.shutting_down:
                return False
            if self._busy >= self._size:
                self._missed = watch.crowded = True
                return False
            self._busy += 1
        self._threads.submit(self._work, run_id)
        return True

    def close(self) -> None:
        """Wait until every run has been let go; `watch.shut_down` has asked for that before."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._alive.close()

    def _work(self, run_id: uuid.UUID | None) -> None:
        while True:
            try:
                close_old_connections()
                self._claim(run_id)
                while self._claim():
                    close_old_connections()
            except DatabaseError as error:
                # The dispatch tick offers the run again.
                log.warning("slot.database", error=type(error).__name__)
            except Exception:
                log.exception("slot.broken")
            run_id = None
            with self._lock:
                if not self._missed:
                    self._busy -= 1
                    self._lock.notify_all()
                    return
                self._missed = False

    def _claim(self, run_id: uuid.UUID | None = None) -> bool:
        """Drive one run; False if none is due, or if nobody could see at once that this process has died.

        What is left then, the dispatch tick offers again.
        """
        if self._alive.wait(ALIVE_SECONDS) and advance(self._worker, run_id):
            return True
        watch.crowded = False  # nobody waits for a slot any more
        return False


@cache
def slots(worker: str) -> Slots:
    """The slots of this process."""
    return Slots(settings.INTERLOCK_WORKER_THREADS, worker)

"""The thread of a worker that takes hints as soon as they come, while one of its slots is free."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import redis
import structlog
from django.conf import settings

from runtime_core.loop.control import watch
from runtime_core.scheduling.wake import DUE

log = structlog.get_logger(__name__)

# How long it waits for one hint, and so how late it may see that its process ends.
WAIT_SECONDS = 1
REST_SECONDS = 0.5
# The client raises a ValueError where a connection was closed while it read.
_BROKER_ERRORS = (redis.RedisError, OSError, ValueError)


class Listener:
    """Takes one hint at a time. A worker without a free slot takes none, so that another one gets them."""

    def __init__(self, free: Callable[[float], bool], offer: Callable[[uuid.UUID], bool]) -> None:
        self._free = free
        self._offer = offer
        self._client: redis.Redis | None = None

    def start(self) -> None:
        """Listen from now on, until the process is asked to end."""
        threading.Thread(target=self._run, name="interlock-due", daemon=True).start()

    def _run(self) -> None:
        while not watch.shutting_down:
            try:
                if self._free(WAIT_SECONDS):
                    self._take()
                else:
                    # A run that has had its slot for long may give it to one that waits.
                    watch.crowded = bool(self._broker().zcard(DUE))
            except _BROKER_ERRORS as error:
                log.debug("listener.broker", error=type(error).__name__)
                self._client = None
                threading.Event().wait(REST_SECONDS)

    def _broker(self) -> redis.Redis:
        if self._client is None:
            self._client = redis.Redis.from_url(
                settings.REDIS_URL, socket_timeout=WAIT_SECONDS + 2, socket_connect_timeout=1
            )
        return self._client

    def _take(self) -> None:
        taken: Any = self._broker().bzpopmin(DUE, timeout=WAIT_SECONDS)
        if not taken:
            return
        with suppress(ValueError):  # somebody else's
            self._offer(uuid.UUID(bytes(taken[1]).decode()))

"""The process's one asyncio loop: a daemon thread, started on first use, forgotten in a child."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any

import httpx2

from runtime_core.limits import limits

POOL_CONNECTIONS = 64
POOL_KEEPALIVE = 16
_JOIN_SECONDS = 5.0


class Job:
    """A coroutine that runs on the loop, seen from another thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, None]) -> None:
        self._loop = loop
        self._work = work
        self._task: asyncio.Task[None] | None = None
        self.ended = threading.Event()
        loop.call_soon_threadsafe(self._start)

    def cancel(self, wait_seconds: float) -> bool:
        """Ask the coroutine to stop and wait for its clean-up; True if it ended in time."""
        if not self.ended.is_set() and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._cancel)
        return self.ended.wait(wait_seconds)

    def _start(self) -> None:
        self._task = self._loop.create_task(self._work)
        self._task.add_done_callback(self._finish)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _finish(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            task.exception()  # handed on already; looking at it keeps asyncio from logging it again
        self.ended.set()


class LoopThread:
    """One running loop, with the HTTP connections that belong to it."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._http: httpx2.AsyncClient | None = None
        self._thread = threading.Thread(target=self._run, name="interlock-gateway", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def submit(self, work: Coroutine[Any, Any, None]) -> Job:
        """Run `work` on the loop."""
        return Job(self.loop, work)

    def http(self) -> httpx2.AsyncClient:
        """The loop's HTTP client; called on the loop only."""
        if self._http is None:
            self._http = httpx2.AsyncClient(
                timeout=timeouts(),
                limits=httpx2.Limits(
                    max_connections=POOL_CONNECTIONS, max_keepalive_connections=POOL_KEEPALIVE
                ),
            )
        return self._http

    def stop(self) -> None:
        """Cancel what runs, close all connections and end the thread."""
        if not self.alive:
            return
        asyncio.run_coroutine_threadsafe(self._shut_down(), self.loop)
        self._thread.join(_JOIN_SECONDS)

    async def _shut_down(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        if self._http is not None:
            await self._http.aclose()
        self.loop.stop()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        finally:
            self.loop.close()


def timeouts() -> httpx2.Timeout:
    """What HTTP itself waits for; not for reading, which `request` times by its meaning."""
    connect = limits().model_connect_seconds
    return httpx2.Timeout(
        connect=connect, pool=connect, write=limits().model_first_token_seconds, read=None
    )


_guard = threading.Lock()
_current: LoopThread | None = None


def start_loop() -> LoopThread:
    """The process's loop, started if it does not run; `stream` calls this by itself."""
    global _current
    with _guard:
        if _current is None or not _current.alive:
            _current = LoopThread()
        return _current


def stop_loop() -> None:
    """End the loop and every stream on it; the next `stream` starts a new one."""
    global _current
    with _guard:
        stopping, _current = _current, None
    if stopping is not None:
        stopping.stop()


def _forget_in_child() -> None:
    # A forked child has no such thread, and the lock may be held; the sockets are the parent's.
    global _guard, _current
    _guard = threading.Lock()
    _current = None


os.register_at_fork(after_in_child=_forget_in_child)

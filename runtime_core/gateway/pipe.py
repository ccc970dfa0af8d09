"""A bounded queue from a coroutine, which waits while it is full, to a thread, which it wakes."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Pipe(Generic[T]):
    """One writer on the loop, one reader in a thread; at most `capacity` items wait in it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, capacity: int) -> None:
        self._loop = loop
        self._capacity = capacity
        self._items: deque[T] = deque()
        self._filled = threading.Condition()
        self._room = asyncio.Event()
        self._ended = False
        self._patient = False

    async def put(self, item: T) -> None:
        """Add one item, waiting for room; only on the loop."""
        while not self._added(item):
            self._room.clear()
            if self.full:
                await self._room.wait()

    @property
    def full(self) -> bool:
        return len(self._items) >= self._capacity

    def end(self) -> None:
        """Nothing more will come: a reader that waits returns at once."""
        with self._filled:
            self._ended = True
            self._filled.notify()

    def take(self, timeout_seconds: float, patience_seconds: float = 0.0) -> tuple[list[T], bool]:
        """All items, waiting up to the timeout for one, and whether the pipe has ended.

        With patience, waits so much longer for the end, so that what comes at once is taken at once.
        """
        with self._filled:
            if not self._items and not self._ended:
                self._filled.wait(timeout_seconds)
            if self._items and patience_seconds:
                self._patient = True
                self._filled.wait_for(lambda: self._ended or self.full, patience_seconds)
                self._patient = False
            items = list(self._items)
            self._items.clear()
            ended = self._ended
        if items and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._room.set)
        return items, ended

    def _added(self, item: T) -> bool:
        with self._filled:
            if self.full:
                return False
            self._items.append(item)
            # Waking a reader that would go on waiting costs more than all the rest here.
            if not self._patient or self.full:
                self._filled.notify()
            return True

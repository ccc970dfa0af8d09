"""Database reads for code on the event loop: a few threads of their own, so that one slow query blocks nobody.

Connections are given back after each call, so their number is bounded by the threads, not by the sockets.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.db import connections

THREADS = 8

P = ParamSpec("P")
R = TypeVar("R")

_pool = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="interlock-db")


async def in_db_thread(read: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """What `read` returns or raises; it runs in a thread and may use the ORM."""

    def and_give_back() -> R:
        try:
            return read(*args, **kwargs)
        finally:
            # With the pool of a web process this returns the connection to it.
            connections.close_all()

    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(_pool, context.run, and_give_back)

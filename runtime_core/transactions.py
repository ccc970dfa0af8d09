"""The one door through which the runtime commits, so that a test can let any commit fail before, within or after it.

A test reads the code and finds no other place that commits (tests/faults/test_commit_sites.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from django.db import connection, transaction

from runtime_core.failpoints import armed, failpoint


@contextmanager
def one_commit(name: str, *, alone: bool = False) -> Iterator[None]:
    """Commit what the block writes, whole or not at all; inside another transaction it joins that one.

    With `alone`, the block is one statement that commits by itself.
    """
    if connection.in_atomic_block:
        with nullcontext() if alone else transaction.atomic():
            yield
        return
    failpoint(name, "before")
    if alone:
        yield
        failpoint(name, "after")
        return
    with transaction.atomic():
        if armed():
            # The first thing after the commit: a process may die with its hints unsent.
            transaction.on_commit(lambda: failpoint(name, "after"))
        yield
        failpoint(name, "inside")


@contextmanager
def outside(name: str) -> Iterator[None]:
    """What the block does is seen by others than the database: a tool, a model, a message to the broker."""
    failpoint(name, "before")
    yield
    failpoint(name, "after")

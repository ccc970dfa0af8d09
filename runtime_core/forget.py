"""Letting go of what people said, on purpose: otherwise the database refuses to take a message away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from django.db import connection

from runtime_core import ports
from runtime_core.transactions import one_commit
from runtime_core.values import Audit


@contextmanager
def forgetting(entries: Sequence[Audit]) -> Iterator[None]:
    """A transaction in which messages may be deleted, and which leaves these entries in the audit."""
    if not entries:
        raise ValueError("what is forgotten leaves an entry in the audit")
    with one_commit("forget"):
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('interlock.forget', 'on', true)")
        yield
        ports.audit().record(entries)
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('interlock.forget', '', true)")

"""What every change around a request has in common: the lock, the right to see it, and its traces: a
line in its history, an event of its run, an entry in the audit.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import transaction

from approvals.deciding import entry
from approvals.deciding.records import record
from approvals.models import HistoryEntry
from runtime_core import decisions, ports, revising
from runtime_core.decisions import Locked
from runtime_core.errors import AlreadyDecided, NotAllowed
from runtime_core.sanitize import clip, storable_text
from runtime_core.states import InterruptStatus
from runtime_core.transactions import one_commit
from runtime_core.values import Actor


@contextmanager
def opened(
    actor: Actor, interrupt_id: uuid.UUID, token_project: uuid.UUID | None = None
) -> Iterator[Locked]:
    """The request, open and locked with its run, for somebody who may see it; one transaction.

    NotFound if they may not see it, AlreadyDecided if it is open no more.
    """
    interrupt = entry.find(interrupt_id)
    if not actor.is_system:
        entry.require_visible(actor, interrupt, token_project)
    with one_commit("share work"):
        locked = entry.lock(interrupt)
        if locked.interrupt.status != InterruptStatus.OPEN:
            raise AlreadyDecided("The request is not open any more; nothing was done.")
        yield locked
        transaction.on_commit(lambda: decisions.wake(locked.run))


def person_id(actor: Actor) -> int:
    """Whose account it is; NotAllowed for the system, which shares no work."""
    if actor.user_id is None:
        raise NotAllowed("Only people do this.")
    return actor.user_id


def keep(locked: Locked, actor: Actor, action: str, text: str, **data: Any) -> None:
    """Write down who did what to the request, wherever somebody may look for it."""
    clean = ports.redactor().text(storable_text(text))
    name = ports.redactor().text(actor.name)[:150]
    HistoryEntry.objects.create(
        interrupt=locked.interrupt, actor_name=name, text=clip(clean, 300)[0]
    )
    revising.tell(locked, f"{actor.name} {text} ({locked.tool_call.tool})")
    record(action, actor, locked.interrupt, tool=locked.tool_call.tool, **data)

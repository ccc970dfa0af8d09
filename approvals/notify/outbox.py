"""The notice of each thing that people want to know of, in the transaction in which it happens."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from approvals.notify.models import Notice, NoticeKind
from runtime_core import ports
from runtime_core.values import Audit

# Everything that matters is told to the audit in its own transaction; these are told to people too.
_KINDS = {
    "interrupt.opened": NoticeKind.OPENED,
    "interrupt.assigned": NoticeKind.ASSIGNED,
    "interrupt.escalated": NoticeKind.ESCALATED,
    "interrupt.decided": NoticeKind.DECIDED,
    "interrupt.overridden": NoticeKind.DECIDED,
    "interrupt.expired": NoticeKind.EXPIRED,
}


def note(entries: Sequence[Audit]) -> None:
    """Write a notice for each of these that people are told of; it commits with them, or not at
    all. An entry's `audience` (ids of people) narrows whom it is for.
    """
    notices = [
        Notice(
            interrupt_id=uuid.UUID(entry.object_id),
            kind=_KINDS[entry.action],
            audience=list(entry.data.get("audience", [])),
            actor_name=ports.redactor().text(entry.actor.name)[:150],
        )
        for entry in entries
        if entry.action in _KINDS
    ]
    if notices:
        Notice.objects.bulk_create(notices)

"""Checkpoints as rows: the newest, the newest that still verifies, and one more of a run that nobody holds."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from django.db.models import QuerySet

from runtime_core.checkpoints import snapshot
from runtime_core.errors import StateUnusable
from runtime_core.models import Checkpoint
from runtime_core.prepared import instances
from runtime_core.states import CheckpointReason
from runtime_core.transitions import NewEvent

SEARCHED = 200


def newest(run_id: uuid.UUID) -> Checkpoint | None:
    """The run's latest checkpoint."""
    found = instances(
        Checkpoint, "WHERE run_id = %(run)s ORDER BY epoch DESC, id DESC LIMIT 1", run=run_id
    )
    return found[0] if found else None


def newest_sound(run_id: uuid.UUID, bodies: Sequence[str]) -> Checkpoint | None:
    """The latest one that verifies against the run's messages, among the last few hundred; None if none does."""
    for found in _newest_first(run_id)[:SEARCHED]:
        try:
            snapshot.verify(found, bodies[: found.messages])
        except StateUnusable:
            continue
        return found
    return None


def mark(run_id: uuid.UUID, reason: CheckpointReason) -> list[NewEvent]:
    """One more checkpoint of a run whose messages are those of its newest, in the caller's transaction; its event.

    Nothing for a run that has none yet: its beginning is its checkpoint.
    """
    last = newest(run_id)
    if last is None:
        return []
    made = Checkpoint.objects.create(
        run_id=run_id,
        step=last.step,
        epoch=last.epoch,
        reason=reason.value,
        schema_version=last.schema_version,
        messages=last.messages,
        state=last.state,
        digest=last.digest,
    )
    return [NewEvent("checkpoint", {"id": str(made.id), "reason": reason.value})]


def _newest_first(run_id: uuid.UUID) -> QuerySet[Checkpoint]:
    """By the claim that wrote them, then by their ids: clocks of two machines do not agree, those of one do."""
    return Checkpoint.objects.filter(run_id=run_id).order_by("-epoch", "-id")

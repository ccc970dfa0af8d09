"""Which runs a legal hold keeps, and the lock by which a hold that was set is seen by every deletion after it."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from django.db import connection
from django.db.models.functions import Now

from runtime_core import ports
from runtime_core.values import Actor, Audit
from traces.models import LegalHold

_LOCK = 0x10C6_401D

# The runs that holds name, and those that work for them or take them back. A project's runs are looked up by the
# project instead: there may be very many of them, and whatever works for them is in the same project.
HELD = """
held_project AS MATERIALIZED (
    SELECT object_id::uuid AS id FROM legal_hold WHERE kind = 'project' AND released_at IS NULL
), held(id) AS (
    SELECT run.id FROM legal_hold hold JOIN run ON run.id = CASE WHEN kind = 'run' THEN object_id::uuid END
    WHERE released_at IS NULL
    UNION
    SELECT run.id FROM legal_hold hold
    JOIN run ON run.thread_id = CASE WHEN kind = 'thread' THEN object_id::uuid END
    WHERE released_at IS NULL
    UNION
    SELECT run.id FROM legal_hold hold
    JOIN run ON run.created_by_id = CASE WHEN kind = 'user' THEN object_id::bigint END
    WHERE released_at IS NULL
    UNION
    SELECT run.id FROM held JOIN run ON run.parent_id = held.id OR run.undoes_id = held.id
)
"""
FREE = """run.id NOT IN (SELECT id FROM held) AND run.project_id NOT IN (SELECT id FROM held_project)"""


def guard() -> None:
    """Called first in a transaction that deletes: its later statements see every hold that was set before."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock_shared(%s)", [_LOCK])


def held_among(runs: Iterable[uuid.UUID]) -> set[uuid.UUID]:
    """Those of the runs that must be kept."""
    sql = f"WITH RECURSIVE {HELD} SELECT run.id FROM run WHERE run.id = ANY(%s) AND NOT ({FREE})"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(sql, [list(runs)])
        return {row[0] for row in cursor.fetchall()}


def put(hold: LegalHold, actor: Actor, project_id: uuid.UUID | None) -> None:
    """Set the hold, in the caller's transaction; deletions that are under way end first."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
    hold.set_by_id = actor.user_id
    hold.save(force_insert=True)
    _record("hold.set", hold, actor, project_id)


def release(hold: LegalHold, actor: Actor, project_id: uuid.UUID | None) -> bool:
    """Let go of what was held, in the caller's transaction; False if somebody has done so before."""
    rows = LegalHold.objects.filter(pk=hold.pk, released_at=None)
    if not rows.update(released_at=Now(), released_by=actor.user_id):
        return False
    _record("hold.released", hold, actor, project_id)
    return True


def _record(action: str, hold: LegalHold, actor: Actor, project_id: uuid.UUID | None) -> None:
    facts = {"kind": hold.kind, "object": hold.object_id, "reason": hold.reason}
    ports.audit().record(
        [Audit(action, actor, "legal_hold", str(hold.pk), project_id=project_id, data=facts)]
    )

"""Which runs a legal hold keeps, and the lock by which a hold that was set is seen by every deletion after it."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from django.contrib.auth import get_user_model
from django.db import connection
from django.db.models.functions import Now

from runtime_core import ports
from runtime_core.models import Project, Run, Thread
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


@dataclass(frozen=True, slots=True)
class Subject:
    """What a hold names, its id as it is stored, and the project that it is in (a user is in none)."""

    object_id: str
    project_id: uuid.UUID | None


def subject(kind: str, object_id: str) -> Subject | None:
    """What there is of this kind and id; None if nothing."""
    try:
        if kind == LegalHold.Kind.USER:
            number = int(object_id)
            there = number < 2**63 and get_user_model().objects.filter(pk=number).exists()
            return Subject(str(number), None) if there else None
        id_ = uuid.UUID(object_id)
    except ValueError:
        return None
    if kind == LegalHold.Kind.PROJECT:
        return Subject(str(id_), id_) if Project.objects.filter(pk=id_).exists() else None
    rows = Run.objects.all() if kind == LegalHold.Kind.RUN else Thread.objects.all()
    project_id = rows.filter(pk=id_).values_list("project_id", flat=True).first()
    return Subject(str(id_), project_id) if project_id else None


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
    hold.reason = ports.redactor().text(hold.reason)[:300]
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

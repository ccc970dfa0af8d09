"""Payloads of audit entries whose time is over: the headings and their chain stay, with a record of what was erased."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from django.db import connection

from runtime_core.forget import forgetting
from runtime_core.values import SYSTEM, Audit
from traces.audit.erasure import ERASED, IDS_A_RECORD
from traces.holds import HELD
from traces.retention.policy import Kept

# Records of erasures stay for the chain, and those of holds and deletions as the evidence that they are. Entries of
# what is held stay too: its runs, its project, what the person did, and what is told of the thing itself.
_OLD = f"""
WITH RECURSIVE {HELD} SELECT entry.id FROM audit_payload payload JOIN audit_entry entry ON entry.id = payload.entry_id
WHERE entry.seq IS NOT NULL AND entry.action <> '{ERASED}' AND entry.action NOT LIKE 'hold.%%'
  AND entry.action NOT LIKE 'data.%%'
  AND entry.at < statement_timestamp()
      - make_interval(days => COALESCE((%(projects)s::jsonb ->> entry.project_id::text)::int, %(days)s))
  AND (entry.run_id IS NULL OR entry.run_id NOT IN (SELECT id FROM held))
  AND (entry.project_id IS NULL OR entry.project_id NOT IN (SELECT id FROM held_project))
  AND NOT EXISTS (SELECT 1 FROM legal_hold hold WHERE hold.released_at IS NULL AND (
      hold.object_id = entry.object_id OR hold.kind = 'user' AND hold.object_id = entry.actor_id::text))
"""  # noqa: S608
_SOME = f"{_OLD} ORDER BY entry.id LIMIT {IDS_A_RECORD} FOR UPDATE OF payload SKIP LOCKED"


def count(found: Kept, projects: list[uuid.UUID] | None) -> int:
    """How many payloads the next sweep would erase, in these projects or in all."""
    here = "" if projects is None else "AND entry.project_id = ANY(%(here)s)"
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT count(*) FROM ({_OLD} {here}) old",  # noqa: S608
            {**found.values, "here": projects},
        )
        row = cursor.fetchone()
    return int(row[0]) if row else 0


def sweep(
    found: Kept, timed: Callable[[Callable[[], int]], int], is_over: Callable[[], bool]
) -> None:
    """Erase payloads, some in a transaction, each time with a record of which."""
    while not is_over() and timed(lambda: _some(found)):
        pass


def _some(found: Kept) -> int:
    with connection.cursor() as cursor:
        cursor.execute(_SOME, found.values)
        ids = [row[0] for row in cursor.fetchall()]
        if not ids:
            return 0
        data = {"entries": [str(one) for one in ids]}
        with forgetting([Audit(ERASED, SYSTEM, "retention", "audit_payloads", data=data)]):
            cursor.execute("DELETE FROM audit_payload WHERE entry_id = ANY(%s)", [ids])
    return len(ids)

"""Keeps the permits of each quota as many as the quota says, whatever is running while it changes.

A new limit counts what runs already; a lower one retires places that are held, so that nothing that runs is broken and
nothing starts before it may.
"""

from __future__ import annotations

from typing import Any

from django.db import connection

from runtime_core.loop import places
from runtime_core.models import Quota, QuotaKind
from runtime_core.sql_claim import FREE_LEFT
from runtime_core.transactions import one_commit

# Every claim writes leases, so each is over or has not begun: it sees the quotas as they were or as they are.
_NO_CLAIM = "LOCK TABLE run_lease, permit IN SHARE ROW EXCLUSIVE MODE"
# Under quotas every claim writes permits, too: enough where only the places of one change.
_ALONE = "LOCK TABLE permit IN SHARE ROW EXCLUSIVE MODE"

_ADOPT = """
INSERT INTO permit (quota_id, held_by, epoch, taken_at, retired)
SELECT %(quota)s, run.id, run.lease_epoch, clock_timestamp(), false FROM run
WHERE run.status = 'running' AND {whose}
  AND NOT EXISTS (SELECT FROM permit WHERE quota_id = %(quota)s AND held_by = run.id)
"""
_WHOSE = {
    QuotaKind.ALL: "%(key)s = ''",
    QuotaKind.PROJECT: "run.project_id = %(key)s::uuid",
    QuotaKind.AGENT: "run.agent_id = %(key)s::uuid",
}
_UNRETIRE = """
UPDATE permit SET retired = false WHERE id IN (
    SELECT id FROM permit WHERE quota_id = %(quota)s AND retired ORDER BY id LIMIT %(count)s)
"""
_ADD = """
INSERT INTO permit (quota_id, epoch, retired) SELECT %(quota)s, 0, false FROM generate_series(1, %(count)s)
"""
_REMOVE = """
DELETE FROM permit WHERE id IN (
    SELECT id FROM permit WHERE quota_id = %(quota)s AND NOT retired AND held_by IS NULL
    ORDER BY id LIMIT %(count)s)
"""
_RETIRE = """
UPDATE permit SET retired = true WHERE id IN (
    SELECT id FROM permit WHERE quota_id = %(quota)s AND NOT retired ORDER BY id DESC LIMIT %(count)s)
"""
_PLACES = "SELECT count(*) FROM permit WHERE quota_id = %(quota)s AND NOT retired"
_OVERHUNG = """
SELECT quota_id, count(*) FILTER (WHERE held_by IS NOT NULL) FROM permit WHERE retired GROUP BY quota_id
"""
_FORGET_RETIRED = "DELETE FROM permit WHERE quota_id = %(quota)s AND retired AND held_by IS NULL"

# How many of those that wait for a place there is one for; for all, where the quota itself is gone.
_WAITING = """
WITH waiting AS (SELECT DISTINCT waits_for FROM run WHERE status = 'waiting' AND waits_for <> '')
SELECT waits_for, COALESCE((
    SELECT count(permit.id) FROM quota
    LEFT JOIN permit ON permit.quota_id = quota.id AND permit.held_by IS NULL AND NOT permit.retired
    WHERE quota.kind || ':' || quota.key = waits_for GROUP BY quota.id), %(all)s)
FROM waiting
"""
BATCH = 100


def apply(quota: Quota) -> None:
    """Make the places as many as the quota says, in the caller's transaction."""
    params: dict[str, Any] = {"quota": quota.pk, "key": quota.key, "count": 0}
    with connection.cursor() as cursor:
        cursor.execute(_NO_CLAIM)
        whose = _WHOSE.get(QuotaKind(quota.kind))
        if whose:
            cursor.execute(_ADOPT.format(whose=whose), params)
        cursor.execute(_PLACES, params)
        missing = quota.at_once - int(cursor.fetchone()[0])
        if missing > 0:
            cursor.execute(_UNRETIRE, {**params, "count": missing})
            cursor.execute(_ADD, {**params, "count": missing - cursor.rowcount})
        elif missing < 0:
            cursor.execute(_REMOVE, {**params, "count": -missing})
            cursor.execute(_RETIRE, {**params, "count": -missing - cursor.rowcount})


def settle() -> None:
    """Free what crashed holders left, and let free places take over from retired ones that are still held."""
    with one_commit("settle_quotas", alone=True), connection.cursor() as cursor:
        cursor.execute(FREE_LEFT)
    with connection.cursor() as cursor:
        cursor.execute(_OVERHUNG)
        overhung = cursor.fetchall()
    for quota_id, held in overhung:
        _settle_one(quota_id, held)


def _settle_one(quota_id: int, held: int) -> None:
    params: dict[str, Any] = {"quota": quota_id, "count": held}
    with one_commit("settle_quota"), connection.cursor() as cursor:
        cursor.execute(_ALONE)
        cursor.execute(_FORGET_RETIRED, params)
        cursor.execute(_REMOVE, params)
        cursor.execute(_UNRETIRE, {**params, "count": cursor.rowcount})


def wake_waiting() -> int:
    """Wake runs that wait for places of tools and models, as many as there are places; how many."""
    with connection.cursor() as cursor:
        cursor.execute(_WAITING, {"all": BATCH})
        waiting = cursor.fetchall()
    return sum(places.pass_on(what) for what, free in waiting for _ in range(min(free, BATCH)))

"""Deletes the rows of what is hidden, in short batches that any worker may go on with, and leaves a receipt."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.apps import apps
from django.db import connection

from runtime_core import clock, ports
from runtime_core.forget import forgetting
from runtime_core.sanitize import canonical
from runtime_core.tools import workspace
from runtime_core.transactions import one_commit
from runtime_core.values import SYSTEM, Audit
from traces import holds
from traces.deletion.plan import ROWS, Rows
from traces.models import DeletionRequest

BATCH = 2_000
State = DeletionRequest.State


def purge_due() -> None:
    """Delete all that was asked for and not yet done, oldest first."""
    due = DeletionRequest.objects.filter(state=State.PENDING).order_by("created_at", "id")
    for request_id in list(due.values_list("id", flat=True)):
        purge(request_id)


def purge(request_id: uuid.UUID) -> None:
    """Delete everything of one request; called again after a crash, it goes on."""
    request = DeletionRequest.objects.get(id=request_id)
    if holds.held_among(request.runs):
        return  # hidden, but kept: it goes on when the hold is released
    for run_id in request.runs:
        workspace.remove(run_id)
    while not _finish(request_id):
        for rows in ROWS:
            while _delete_some(request_id, rows) == BATCH:
                pass
        if holds.held_among(request.runs):
            return


def delete_at_once(request: DeletionRequest) -> None:
    """Delete, in the commit that hides, what must not have an effect any longer; the caller saves the request."""
    for rows in ROWS:
        if rows.at_once:
            delete_batch(request, rows, _values(request), everything=True)


def left(request: DeletionRequest) -> dict[str, int]:
    """How many rows of each table the request has not reached yet; only tables that have some."""
    found = {rows.model: _count(request, rows) for rows in ROWS}
    return {model: number for model, number in found.items() if number}


def _delete_some(request_id: uuid.UUID, rows: Rows) -> int:
    with _batch(request_id, rows):
        # Locked: whoever else purges the same waits, and counts add up.
        holds.guard()
        request = DeletionRequest.objects.select_for_update().get(id=request_id)
        if request.state != State.PENDING or holds.held_among(request.runs):
            return 0
        gone = delete_batch(request, rows, _values(request))
        if gone:
            request.save(update_fields=["counts"])
    return gone


def delete_batch(
    request: DeletionRequest, rows: Rows, values: dict[str, Any], *, everything: bool = False
) -> int:
    """Delete some of these rows, or all of them, and count them in the request, which the caller saves."""
    sql = f"DELETE FROM {_table(rows)} WHERE {rows.where}" if everything else _delete(rows)  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        gone = int(cursor.rowcount)
    if gone:
        request.counts[rows.model] = request.counts.get(rows.model, 0) + gone
    return gone


@contextmanager
def _batch(request_id: uuid.UUID, rows: Rows) -> Iterator[None]:
    if not rows.forget:
        with one_commit("purge"):
            yield
        return
    entry = Audit("data.forgotten", SYSTEM, "deletion", str(request_id), data={"of": rows.model})
    with forgetting([entry]):
        yield


def _finish(request_id: uuid.UUID) -> bool:
    """Write the receipt if nothing is left in any table."""
    with one_commit("purged"):
        request = DeletionRequest.objects.select_for_update().get(id=request_id)
        if request.state != State.PENDING:
            return True
        if left(request):
            return False
        request.state, request.ended_at = State.DONE, clock.now()
        request.runs, request.threads = [], []
        facts = receipt_facts(request)
        request.receipt = hashlib.sha256(canonical(facts).encode()).hexdigest()
        request.save()
        entry = Audit(
            "data.deleted",
            SYSTEM,
            request.kind,
            request.object_id,
            project_id=request.project_id,
            data={**facts, "receipt": request.receipt},
        )
        ports.audit().record([entry])
    return True


def receipt_facts(request: DeletionRequest) -> dict[str, Any]:
    """What the receipt is a digest of."""
    return {
        "request": str(request.id),
        "kind": request.kind,
        "object_id": request.object_id,
        "runs": request.run_count,
        "counts": request.counts,
    }


def _delete(rows: Rows) -> str:
    table, order = _table(rows), f"ORDER BY {rows.order}" if rows.order else ""
    some = f"SELECT ctid FROM {table} WHERE {rows.where} {order} LIMIT {BATCH}"  # noqa: S608
    return f"DELETE FROM {table} WHERE ctid = ANY(ARRAY({some}))"  # noqa: S608


def _count(request: DeletionRequest, rows: Rows) -> int:
    with connection.cursor() as cursor:
        sql = f"SELECT count(*) FROM {_table(rows)} WHERE {rows.where}"  # noqa: S608
        cursor.execute(sql, _values(request))
        row = cursor.fetchone()
    return int(row[0]) if row else 0


def _table(rows: Rows) -> str:
    return connection.ops.quote_name(apps.get_model(rows.model)._meta.db_table)


def _values(request: DeletionRequest) -> dict[str, Any]:
    ids = [*request.runs, *request.threads]
    return {"runs": request.runs, "threads": request.threads, "ids": [str(one) for one in ids]}

"""Taking the payloads of audit entries away: the headers and their chain stay, and a record says which were erased."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterable

from django.db.models import Q

from runtime_core import ports
from runtime_core.values import Actor, Audit
from traces.models import AuditEntry, AuditPayload, DeletionRequest

ERASED = "audit.erased"
# Ids in one record; far below the size from which a payload is withheld.
IDS_A_RECORD = 500


def erase_of_runs(
    actor: Actor,
    request: DeletionRequest,
    runs: Collection[uuid.UUID],
    threads: Collection[uuid.UUID],
) -> int:
    """Erase what the audit keeps of these runs and threads, within `forgetting`; how many payloads went."""
    ids = [str(one) for one in (*runs, *threads)]
    rows = AuditEntry.objects.filter(Q(run_id__in=runs) | Q(object_id__in=ids))
    return erase(actor, request, rows.exclude(action=ERASED).values_list("id", flat=True))


def erase(actor: Actor, request: DeletionRequest, entries: Iterable[uuid.UUID]) -> int:
    """Erase the payloads of these entries that still have one, and record which."""
    gone = 0
    ids = list(entries)
    for start in range(0, len(ids), IDS_A_RECORD):
        some = AuditPayload.objects.filter(entry_id__in=ids[start : start + IDS_A_RECORD])
        erased = sorted(str(one) for one in some.values_list("entry_id", flat=True))
        if not erased:
            continue
        some.delete()
        gone += len(erased)
        data = {"request": str(request.id), "entries": erased}
        entry = Audit(ERASED, actor, "deletion", str(request.id), request.project_id, data=data)
        ports.audit().record([entry])
    return gone


def erased_entries() -> frozenset[str]:
    """The ids of all entries whose erasure was recorded."""
    records = AuditPayload.objects.filter(entry__action=ERASED).values_list("body", flat=True)
    return frozenset(
        str(one) for body in records.iterator() for one in json.loads(body).get("entries", [])
    )

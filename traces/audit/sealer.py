"""The sealer: gives unsealed entries their place in the chain. One at a time, wherever it runs."""

from __future__ import annotations

from django.db import connection, transaction

from traces.audit.anchors import append_anchor, newest_anchor
from traces.audit.chain import GENESIS, entry_hash
from traces.models import AuditEntry

LOCK = 0x1A0D17  # of pg_advisory_lock: any number that nothing else here uses
BATCH = 500

_SEAL = """
UPDATE audit_entry SET seq = sealed.seq, prev_hash = sealed.prev, hash = sealed.hash
FROM unnest(%s::uuid[], %s::bigint[], %s::text[], %s::text[]) AS sealed(id, seq, prev, hash)
WHERE audit_entry.id = sealed.id
"""


def seal() -> int:
    """Seal what is committed and unsealed. How many entries that were; 0 if another is at it."""
    total = 0
    _anchor_what_a_crash_left()
    while True:
        count, seq, head = _seal_batch()
        if count:
            # After the commit: an anchor must never name a head that was rolled back.
            append_anchor(seq, head)
        total += count
        if count < BATCH:
            return total


def _anchor_what_a_crash_left() -> None:
    """Anchor the head if whoever sealed it died before that, so that no tail stands unproven until the next entry.

    Where there is no anchor that holds, there is nothing to go on from: that is for `verify` to say, not to hide.
    """
    anchor = newest_anchor()
    if anchor is None or anchor.problem:
        return
    last = AuditEntry.objects.exclude(seq=None).order_by("-seq").values_list("seq", "hash").first()
    if last and last[0] is not None and last[0] > anchor.seq:
        append_anchor(last[0], last[1])


@transaction.atomic
def _seal_batch() -> tuple[int, int, str]:
    if not _locked():
        return 0, 0, ""
    entries = list(AuditEntry.objects.filter(seq=None).order_by("id")[:BATCH])
    if not entries:
        return 0, 0, ""
    last = AuditEntry.objects.exclude(seq=None).order_by("-seq").values("seq", "hash").first()
    seq, head = (int(last["seq"] or 0), last["hash"]) if last else (0, GENESIS)
    rows: list[tuple[object, int, str, str]] = []
    for entry in entries:
        seq, prev = seq + 1, head
        head = entry_hash(entry, seq, prev)
        rows.append((entry.id, seq, prev, head))
    with connection.cursor() as cursor:
        cursor.execute(_SEAL, [list(column) for column in zip(*rows, strict=True)])
    return len(rows), seq, head


def _locked() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [LOCK])
        row = cursor.fetchone()
    return bool(row and row[0])

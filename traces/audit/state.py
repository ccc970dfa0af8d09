"""How the chain stands, cheaply: its head, what waits, whether the newest anchor holds."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from runtime_core import clock
from traces.audit.anchors import newest_anchor
from traces.audit.verify import UNSEALED_AFTER
from traces.models import AuditEntry


@dataclass(frozen=True, slots=True)
class ChainState:
    """The newest sealed entry, how many wait; `anchor` is "", "holds" or "broken"."""

    seq: int
    at: dt.datetime | None
    waiting: int
    late: bool
    anchor: str
    anchor_seq: int = 0


def chain_state() -> ChainState:
    """Look at the ends of the chain; `manage.py audit verify` looks at all of it."""
    last = AuditEntry.objects.exclude(seq=None).order_by("-seq").values_list("seq", "at").first()
    oldest = AuditEntry.objects.filter(seq=None).order_by("id").values_list("at", flat=True).first()
    anchor = newest_anchor()
    return ChainState(
        seq=(last[0] or 0) if last else 0,
        at=last[1] if last else None,
        waiting=AuditEntry.objects.filter(seq=None).count() if oldest else 0,
        late=bool(oldest and oldest < clock.now() - UNSEALED_AFTER),
        anchor=_judged(anchor.seq, anchor.hash, anchor.problem) if anchor else "",
        anchor_seq=anchor.seq if anchor else 0,
    )


def _judged(seq: int, head: str, problem: str) -> str:
    if problem:
        return "broken"
    here = AuditEntry.objects.filter(seq=seq).values_list("hash", flat=True).first()
    return "holds" if here == head else "broken"

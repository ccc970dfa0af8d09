"""Checks the chain: every body, link, payload and anchor; one finding a line."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from runtime_core import clock
from traces.audit.anchors import read_anchors
from traces.audit.chain import GENESIS, commitment, entry_hash
from traces.audit.erasure import erased_entries
from traces.models import AuditEntry

UNSEALED_AFTER = dt.timedelta(seconds=60)
FINDINGS_SHOWN = 1_000


@dataclass(slots=True)
class Report:
    """What a check found. `tampered` and `unsealed` hold one line a finding."""

    entries: int = 0
    head: str = GENESIS
    anchors: int = 0
    unanchored: int = 0
    waiting: int = 0
    tampered: list[str] = field(default_factory=list)
    unsealed: list[str] = field(default_factory=list)

    @property
    def exit_status(self) -> int:
        """0 whole, 1 tampered with, 2 whole but entries wait too long for their seal."""
        return 1 if self.tampered else 2 if self.unsealed else 0

    def found(self, line: str) -> None:
        """Note a finding; beyond a thousand there is no point in more."""
        if len(self.tampered) < FINDINGS_SHOWN:
            self.tampered.append(line)


def verify(anchor_copy: Path | None = None) -> Report:
    """Check the whole chain against itself and against the anchors, or against a copy of them kept elsewhere."""
    report = Report()
    anchors = _believable_anchors(report, anchor_copy)
    _check_chain(report, anchors)
    _check_ends(report, anchors)
    _check_waiting(report)
    return report


def _believable_anchors(report: Report, copy: Path | None) -> dict[int, str]:
    anchors: dict[int, str] = {}
    for anchor in read_anchors(copy):
        report.anchors += 1
        if anchor.problem:
            report.found(f"anchor line {anchor.line} {anchor.problem}")
        elif anchors.setdefault(anchor.seq, anchor.hash) != anchor.hash:
            report.found(f"two anchors disagree about entry {anchor.seq}")
    return anchors


def _check_chain(report: Report, anchors: dict[int, str]) -> None:
    expected, previous = 1, GENESIS
    erased = erased_entries()
    for entry in _sealed():
        assert entry.seq is not None  # noqa: S101 (filtered)
        if entry.seq != expected:
            report.found(f"entries {expected} to {entry.seq - 1} are missing")
        if entry.prev_hash != previous:
            report.found(f"entry {entry.seq} does not follow the one before it")
        for problem in _problems(entry, erased):
            report.found(f"entry {entry.seq} {problem}")
        if anchors.get(entry.seq, entry.hash) != entry.hash:
            report.found(f"entry {entry.seq} is not the one that was anchored: rewritten")
        report.entries += 1
        report.head = previous = entry.hash
        expected = entry.seq + 1


def _problems(entry: AuditEntry, erased: frozenset[str]) -> Iterator[str]:
    if entry_hash(entry, entry.seq or 0, entry.prev_hash) != entry.hash:
        yield "was changed"
    payload = getattr(entry, "payload", None)
    if payload is None and str(entry.id) in erased:
        return
    if payload is None:
        yield "has no payload and no record of its erasure"
    elif commitment(payload.salt, entry.actor_name, payload.body) != entry.payload_commit:
        yield "has a changed payload or name"


def _check_ends(report: Report, anchors: dict[int, str]) -> None:
    last = (
        AuditEntry.objects.exclude(seq=None).order_by("-seq").values_list("seq", flat=True).first()
    )
    newest = max(anchors, default=0)
    if newest > (last or 0):
        report.found(f"the chain ends at {last or 0}, but was anchored at {newest}: truncated")
    if last and not anchors:
        report.found("no anchor was found: the anchor file is missing or empty")
    report.unanchored = max((last or 0) - newest, 0)


def _check_waiting(report: Report) -> None:
    report.waiting = AuditEntry.objects.filter(seq=None).count()
    late = AuditEntry.objects.filter(seq=None, at__lt=clock.now() - UNSEALED_AFTER).order_by("id")
    for entry in late[:FINDINGS_SHOWN]:
        seconds = int((clock.now() - entry.at).total_seconds())
        report.unsealed.append(f"entry {entry.id} ({entry.action}) unsealed for {seconds} s")


def _sealed() -> Iterator[AuditEntry]:
    rows = AuditEntry.objects.exclude(seq=None).order_by("seq").select_related("payload")
    return rows.iterator(chunk_size=2_000)

"""Anchors: signed heads of the chain in a file outside the database, which show a rewriting."""

from __future__ import annotations

import fcntl
import hmac
import json
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from runtime_core import clock
from traces.audit.chain import CHAIN, anchor_key, anchor_signature

logger = logging.getLogger(__name__)

TAIL_BYTES = 4_096


@dataclass(frozen=True, slots=True)
class Anchor:
    """A head of the chain as it was once, or why it cannot be believed."""

    line: int
    seq: int = 0
    hash: str = ""
    problem: str = ""


def anchor_file() -> Path:
    """Where this deployment's anchors are."""
    return Path(settings.DATA_DIR) / "audit-anchors.jsonl"


def append_anchor(seq: int, head: str) -> None:
    """Write down that the chain has this head: the whole line reaches the disk, or nothing."""
    at = clock.now().isoformat()
    sig = anchor_signature(anchor_key(settings.SECRET_KEY), seq, head, at)
    line = json.dumps({"chain": CHAIN, "seq": seq, "hash": head, "at": at, "sig": sig}) + "\n"
    path = anchor_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), "r+b", 0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        before = os.fstat(file.fileno()).st_size
        if file.write(line.encode()) != len(line):
            os.ftruncate(file.fileno(), before)
            raise OSError(f"{path} took only part of an anchor: is the disk full?")
        os.fsync(file.fileno())
    # Logs are kept elsewhere, as a rule: another copy that whoever owns this machine has to change too.
    logger.info("audit anchor: entry %d has hash %s, signature %s", seq, head, sig)


def read_anchors(path: Path | None = None) -> Iterator[Anchor]:
    """The anchors of this deployment, or of a copy, in the order they were written, each with what is wrong with it."""
    path = path or anchor_file()
    if not path.is_file():
        return
    keys = [anchor_key(k) for k in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)]
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            yield _read(number, line, keys)


def newest_anchor() -> Anchor | None:
    """The last anchor, read from the end of the file; None if there is none."""
    path = anchor_file()
    if not path.is_file():
        return None
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - TAIL_BYTES, 0))
        lines = file.read().splitlines()
    keys = [anchor_key(k) for k in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)]
    return _read(0, lines[-1].decode("utf-8", "replace"), keys) if lines else None


def _read(number: int, line: str, keys: list[bytes]) -> Anchor:
    try:
        data = json.loads(line)
        seq, head, at, sig = int(data["seq"]), str(data["hash"]), str(data["at"]), str(data["sig"])
    except (ValueError, KeyError, TypeError):
        return Anchor(number, problem="cannot be read")
    if not any(hmac.compare_digest(sig, anchor_signature(key, seq, head, at)) for key in keys):
        return Anchor(number, seq, head, problem="has a wrong signature")
    return Anchor(number, seq, head)

"""The chain's arithmetic: what hashes, commitments and signatures are taken over. Values only."""

from __future__ import annotations

import datetime as dt
import hashlib
import hmac
from typing import Protocol
from uuid import UUID

from runtime_core.sanitize import canonical

CHAIN = "audit"
GENESIS = "0" * 64


class Header(Protocol):
    """The fields of an entry that its hash covers."""

    id: UUID
    at: dt.datetime
    actor_id: int | None
    via: str
    action: str
    object_type: str
    object_id: str
    project_id: UUID | None
    run_id: UUID | None
    payload_commit: str


def commitment(salt: bytes, actor_name: str, body: str) -> str:
    """Bind a name and a payload without telling anything of them: the salt can be erased with them."""
    text = canonical([actor_name, body])
    return hmac.new(bytes(salt), text.encode(), hashlib.sha256).hexdigest()


def entry_hash(entry: Header, seq: int, prev_hash: str) -> str:
    """The hash of an entry at its place. Of people only ids are in it: they can be forgotten."""
    fields = [
        "v1",
        CHAIN,
        seq,
        prev_hash,
        str(entry.id),
        entry.at.astimezone(dt.UTC).isoformat(timespec="microseconds"),
        entry.actor_id,
        entry.via,
        entry.action,
        entry.object_type,
        entry.object_id,
        str(entry.project_id) if entry.project_id else None,
        str(entry.run_id) if entry.run_id else None,
        entry.payload_commit,
    ]
    return hashlib.sha256(canonical(fields).encode()).hexdigest()


def anchor_key(secret: str) -> bytes:
    """The key that anchors are signed with, derived from one that no database holds."""
    return hmac.new(secret.encode(), b"interlock audit anchor v1", hashlib.sha256).digest()


def anchor_signature(key: bytes, seq: int, head: str, at: str) -> str:
    """The signature of "the chain had this head at this length"."""
    text = canonical(["v1", CHAIN, seq, head, at])
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()

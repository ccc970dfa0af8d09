"""Adds audit entries, redacted, in the transaction of what they tell of."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from django.db import transaction

from runtime_core import clock, prepared
from runtime_core.ids import new_id
from runtime_core.sanitize import canonical, storable
from runtime_core.scope import Scope
from runtime_core.values import Audit, Json
from traces.audit.chain import commitment
from traces.gate import redactor

PAYLOAD_BYTES = 64_000


class Log:
    """The audit log."""

    def record(self, entries: Sequence[Audit]) -> None:
        """Add the entries in the caller's transaction: they commit with it, or not at all."""
        made = [_row(entry) for entry in entries]
        if not made:
            return
        with transaction.atomic(savepoint=False):
            for row in made:
                prepared.rows(_ADD, row)


# Every end of a run passes here, in its own transaction: one statement an entry, without the ORM.
_ADD = """
WITH added AS (
    INSERT INTO audit_entry (id, at, actor_id, actor_name, via, action, object_type, object_id, project_id,
        run_id, payload_commit, prev_hash, hash)
    VALUES (%(id)s, %(at)s, %(actor_id)s, %(actor_name)s, %(via)s, %(action)s, %(object_type)s,
        %(object_id)s, %(project_id)s, %(run_id)s, %(payload_commit)s, '', '')
    RETURNING id
), kept AS (
    INSERT INTO audit_payload (entry_id, body, salt) SELECT id, %(body)s, %(salt)s FROM added
)
SELECT id FROM added
"""


def _row(entry: Audit) -> dict[str, Any]:
    clean = redactor().on("audit", Scope(entry.project_id) if entry.project_id else None)
    body = _payload_text(clean.redact(dict(entry.data)).value)
    salt = os.urandom(32)
    name = clean.text(entry.actor.name)[:150]
    return {
        "id": new_id(),
        "at": clock.now(),
        "actor_id": entry.actor.user_id,
        "actor_name": name,
        "via": entry.actor.via[:16],
        "action": entry.action,
        "object_type": entry.object_type,
        "object_id": clean.text(str(entry.object_id))[:200],
        "project_id": entry.project_id,
        "run_id": entry.run_id,
        "payload_commit": commitment(salt, name, body),
        "body": body,
        "salt": salt,
    }


def _payload_text(value: Json) -> str:
    text = canonical(_without_floats(storable(value)))
    if len(text.encode()) > PAYLOAD_BYTES:
        return canonical({"withheld": "too large", "bytes": len(text.encode())})
    return text


def _without_floats(value: Json) -> Any:
    # A float has more than one decimal form, and a digest must not depend on who wrote it.
    match value:
        case float():
            return repr(value)
        case dict():
            return {key: _without_floats(item) for key, item in value.items()}
        case list():
            return [_without_floats(item) for item in value]
        case _:
            return value

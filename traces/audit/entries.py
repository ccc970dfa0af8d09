"""Adds audit entries, redacted, in the transaction of what they tell of."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from django.db import transaction

from runtime_core import clock
from runtime_core.sanitize import canonical, storable
from runtime_core.scope import Scope
from runtime_core.values import Audit, Json
from traces.audit.chain import commitment
from traces.gate import redactor
from traces.models import AuditEntry, AuditPayload

PAYLOAD_BYTES = 64_000


class Log:
    """The audit log."""

    def record(self, entries: Sequence[Audit]) -> None:
        """Add the entries in the caller's transaction: they commit with it, or not at all."""
        made = [_rows(entry) for entry in entries]
        if not made:
            return
        with transaction.atomic(savepoint=False):
            AuditEntry.objects.bulk_create([row for row, _ in made])
            AuditPayload.objects.bulk_create([payload for _, payload in made])


def _rows(entry: Audit) -> tuple[AuditEntry, AuditPayload]:
    clean = redactor().on("audit", Scope(entry.project_id) if entry.project_id else None)
    body = _payload_text(clean.redact(dict(entry.data)).value)
    salt = os.urandom(32)
    name = clean.text(entry.actor.name)[:150]
    row = AuditEntry(
        at=clock.now(),
        actor_id=entry.actor.user_id,
        actor_name=name,
        via=entry.actor.via[:16],
        action=entry.action,
        object_type=entry.object_type,
        object_id=clean.text(str(entry.object_id))[:200],
        project_id=entry.project_id,
        run_id=entry.run_id,
        payload_commit=commitment(salt, name, body),
    )
    return row, AuditPayload(entry=row, body=body, salt=salt)


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

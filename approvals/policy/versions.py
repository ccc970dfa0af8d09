"""The only writer of approval policies: an edit is the next version, and each is in the audit."""

from __future__ import annotations

from typing import Any

from django.db.models.functions import Now

from approvals.models import ApprovalPolicy
from runtime_core import ports
from runtime_core.errors import InvalidInput
from runtime_core.ids import new_id
from runtime_core.transactions import one_commit
from runtime_core.values import Actor, Audit, Json

FIELDS = (
    "name",
    "note",
    "project_id",
    "agent",
    "tool",
    "risk",
    "conditions",
    "required",
    "roles",
    "groups",
    "people",
    "requester_may",
    "editor_may",
    "machines_may",
    "expires_minutes",
    "on_expiry",
    "escalation",
    "undo_seconds",
    "remember_may",
)


def add(
    actor: Actor, fields: dict[str, Any], before: ApprovalPolicy | None = None
) -> ApprovalPolicy:
    """A new policy, or the next version of `before`; InvalidInput if that is not the last one any more."""
    with one_commit("policy"):
        row = ApprovalPolicy(**fields, created_by_id=actor.user_id, lineage=new_id())
        if before is not None:
            _supersede(before)
            row.lineage, row.number = before.lineage, before.number + 1
        row.save(force_insert=True)
        _record(actor, before, row)
    return row


def retire(actor: Actor, before: ApprovalPolicy) -> ApprovalPolicy:
    """The policy applies to nothing from now on; what it was stays."""
    kept = {name: getattr(before, name) for name in FIELDS}
    return add(actor, {**kept, "retired": True}, before)


def as_json(row: ApprovalPolicy) -> dict[str, Json]:
    """What the policy says, as the audit keeps it."""
    said = {name: getattr(row, name) for name in (*FIELDS, "retired")}
    return {**said, "project_id": str(row.project_id) if row.project_id else None}


def _supersede(row: ApprovalPolicy) -> None:
    last = ApprovalPolicy.objects.filter(id=row.id, superseded_at=None)
    if not last.update(superseded_at=Now()):
        raise InvalidInput("Somebody has changed this policy meanwhile; open it again.")


def _record(actor: Actor, before: ApprovalPolicy | None, after: ApprovalPolicy) -> None:
    ports.audit().record(
        [
            Audit(
                action="policy.changed",
                actor=actor,
                object_type="approvalpolicy",
                object_id=str(after.id),
                project_id=after.project_id,
                data={
                    "version": after.number,
                    "before": as_json(before) if before else None,
                    "after": as_json(after),
                },
            )
        ]
    )

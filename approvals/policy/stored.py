"""The stored policies as values, and what they say of a call or of an interrupt that stands open."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from approvals.models import ApprovalPolicy
from approvals.policy.rules import Policy, Resolution, resolve
from approvals.terms import Terms, from_json
from runtime_core.models import Interrupt
from runtime_core.prepared import instances
from runtime_core.tools import ledger
from runtime_core.tools.registry import registry
from runtime_core.values import ApprovalTerms, Asked, Risk


class Source:
    """What `runtime_core.ports` binds: the terms under which an interrupt opens."""

    def of(self, asked: Sequence[Asked]) -> list[ApprovalTerms]:
        """The terms for each of these calls, which are of one project."""
        if not asked:
            return []
        policies = current(asked[0].project_id)
        return [stored(resolve(policies, one)) for one in asked]


def source() -> Source:
    """The source of this process."""
    return Source()


def current(project_id: uuid.UUID) -> list[Policy]:
    """The policies that may apply in the project, oldest first."""
    return [as_value(row) for row in instances(ApprovalPolicy, _CURRENT, project=project_id)]


_CURRENT = """
WHERE (project_id = %(project)s OR project_id IS NULL) AND superseded_at IS NULL AND NOT retired
ORDER BY lineage
"""


def as_value(row: ApprovalPolicy) -> Policy:
    """A stored version as the policy's functions take it."""
    return Policy(
        id=row.id,
        lineage=row.lineage,
        name=row.name,
        number=row.number,
        terms=terms_of_row(row),
        project=row.project_id,
        agent=row.agent,
        tool=row.tool,
        risk=row.risk,
        conditions=row.conditions,
    )


def terms_of_row(row: ApprovalPolicy) -> Terms:
    """The terms that a stored version sets."""
    return Terms(
        required=row.required,
        roles=tuple(row.roles),
        groups=tuple(row.groups),
        people=tuple(row.people),
        requester_may=row.requester_may,
        editor_may=row.editor_may,
        machines_may=row.machines_may,
        expires_minutes=row.expires_minutes,
        on_expiry=row.on_expiry,
        escalation=tuple(row.escalation),
        undo_seconds=row.undo_seconds,
        remember_may=row.remember_may,
    )


def stored(found: Resolution) -> ApprovalTerms:
    """A resolution as an interrupt stores it."""
    terms = found.terms
    return ApprovalTerms(
        policy=found.policy.id if found.policy else None,
        required=terms.required,
        requester_may=terms.requester_may,
        expires_seconds=terms.expires_minutes * 60,
        terms=terms.as_json(),
    )


def terms_of(interrupt: Interrupt) -> Terms:
    """The terms that the interrupt stands under."""
    if not interrupt.terms:
        # From before there were policies: what was promised then is the number that the row has.
        kept = {"required": interrupt.required}
        return from_json(kept, Risk(interrupt.risk))
    return from_json(interrupt.terms, Risk(interrupt.risk))


def resolved_now(interrupt: Interrupt) -> Resolution:
    """What would apply if the interrupt opened now."""
    return resolve(current(interrupt.project_id), asked_of(interrupt))


def asked_of(interrupt: Interrupt) -> Asked:
    """The interrupt's call as policies are matched with it."""
    call = interrupt.tool_call
    tool = registry().get(call.tool)
    return Asked(
        project_id=interrupt.project_id,
        agent=interrupt.run.agent.name,
        tool=call.tool,
        risk=Risk(interrupt.risk),
        args=ledger.args_in(call.args_text),
        schema=tool.spec.schema if tool else {},
    )

"""The rows and audit entries that a decision leaves, in the transaction that makes it."""

from __future__ import annotations

from typing import Any

from approvals.deciding.opinion import Opinion
from approvals.models import VOTES, Decision
from runtime_core import ports, scope
from runtime_core.models import Interrupt
from runtime_core.prepared import instances
from runtime_core.sanitize import storable_text
from runtime_core.values import Actor, Audit


@scope.of_run(lambda interrupt, *_, **__: interrupt.run)
def keep_decision(
    interrupt: Interrupt,
    actor: Actor,
    opinion: Opinion,
    *,
    action: str = "",
    overridden: bool = False,
    seat_id: int | None = None,
) -> Decision:
    """Keep what was decided, on the version that stands now; it fills the actor's own seat or that one."""
    response = opinion.response if isinstance(opinion.response, str) else ""
    comment = opinion.reason or response
    return Decision.objects.create(
        interrupt=interrupt,
        actor_id=actor.user_id,
        actor_name=actor.name,
        seat_id=seat_id or actor.user_id,
        via=actor.via,
        action=action or opinion.action,
        overridden=overridden,
        version=interrupt.version,
        digest=interrupt.digest,
        payload_digest=opinion.payload_digest,
        comment=ports.redactor().text(storable_text(comment.strip())),
    )


_ON_VERSION = """
WHERE interrupt_id = %(interrupt)s AND version = %(version)s ORDER BY created_at, id
"""


def votes_on(interrupt: Interrupt) -> list[Decision]:
    """The votes on the version that stands, read afresh, oldest first."""
    given = instances(Decision, _ON_VERSION, interrupt=interrupt.id, version=interrupt.version)
    return [one for one in given if one.action in VOTES]


def record(action: str, actor: Actor, interrupt: Interrupt, **data: Any) -> None:
    """One entry in the audit about an interrupt."""
    if actor.is_machine:
        data["machine"] = True
    ports.audit().record(
        [
            Audit(
                action=action,
                actor=actor,
                object_type="interrupt",
                object_id=str(interrupt.id),
                project_id=interrupt.project_id,
                run_id=interrupt.run_id,
                data=data,
            )
        ]
    )

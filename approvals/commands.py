"""What people may do in the inbox: decide. Each write is one transaction with the run's row locked
first.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NoReturn

from django.db import transaction

from approvals.models import Decision, Viewing
from approvals.policy import HIDDEN, Ruling
from approvals.rulings import ruling_on
from runtime_core import decisions, ports
from runtime_core.errors import InvalidPayload, NotAllowed, NotFound
from runtime_core.models import Interrupt
from runtime_core.sanitize import canonical, storable
from runtime_core.states import ALLOWED_ACTIONS, InterruptKind, InterruptStatus
from runtime_core.values import Actor, Audit, Json

REASON_MAX = 4_000


@dataclass(frozen=True, slots=True)
class Opinion:
    """What somebody asks to be decided, and on exactly what: `version` and `digest` are what they
    were shown.
    """

    action: str
    version: int
    digest: str
    args: Mapping[str, Json] | None = None
    response: Json = None
    reason: str = ""

    @property
    def payload_digest(self) -> str:
        """SHA-256 over all of it: equal for a repeat, different for another opinion."""
        return hashlib.sha256(canonical(storable(asdict(self))).encode()).hexdigest()


def decide(
    actor: Actor,
    interrupt_id: uuid.UUID,
    opinion: Opinion,
    *,
    token_project: uuid.UUID | None = None,
) -> Interrupt:
    """Settle an interrupt once, and set its run going if nothing else is open.

    The same person's identical repeat returns the settled interrupt again. Raises NotFound,
    NotAllowed (both kept in
    the audit), StaleVersion, AlreadyDecided, Withdrawn, Expired, InvalidPayload; then nothing was
    changed.
    """
    with transaction.atomic():
        locked = decisions.lock(interrupt_id)
        locked.interrupt.run = locked.run
        ruling = ruling_on(locked.interrupt, actor.user_id, token_project)
        if ruling.may and _is_repeat(actor, locked.interrupt, opinion):
            return locked.interrupt
        if ruling.may:
            transaction.on_commit(lambda: decisions.wake(locked.run))
            return _settle(actor, locked, opinion)
    _refuse(actor, locked.interrupt, ruling, opinion)


def admit(
    actor: Actor,
    interrupt_id: uuid.UUID,
    opinion: Opinion,
    *,
    token_project: uuid.UUID | None = None,
) -> None:
    """Pass if `actor` may decide as things are; NotFound or NotAllowed, kept in the audit, if not.

    Only to answer early: `decide` asks again under the lock.
    """
    interrupt = Interrupt.objects.select_related("run").filter(id=interrupt_id).first()
    if interrupt is None:
        raise NotFound(HIDDEN.reason)
    ruling = ruling_on(interrupt, actor.user_id, token_project)
    if not ruling.may:
        _refuse(actor, interrupt, ruling, opinion)


def record_viewing(actor: Actor, interrupt: Interrupt) -> None:
    """Keep in the audit that `actor` was shown raw arguments; once for a person and version."""
    with transaction.atomic():
        _, is_first = Viewing.objects.get_or_create(
            interrupt=interrupt, user_id=actor.user_id, version=interrupt.version
        )
        if is_first:
            data = {"version": interrupt.version, "digest": interrupt.digest}
            ports.audit().record([_entry("interrupt.viewed", actor, interrupt, data)])


def _is_repeat(actor: Actor, interrupt: Interrupt, opinion: Opinion) -> bool:
    if interrupt.status == InterruptStatus.OPEN:
        return False
    return Decision.objects.filter(
        interrupt=interrupt, actor_id=actor.user_id, payload_digest=opinion.payload_digest
    ).exists()


def _settle(actor: Actor, locked: decisions.Locked, opinion: Opinion) -> Interrupt:
    decisions.check_current(locked, opinion.version, opinion.digest)
    _check_shape(locked.interrupt, opinion)
    args_before = locked.tool_call.args_digest
    interrupt = decisions.settle(
        locked,
        actor=actor,
        action=opinion.action,
        args=dict(opinion.args) if opinion.args is not None else None,
        response=opinion.response,
        reason=opinion.reason,
    )
    Decision.objects.create(
        interrupt=interrupt,
        actor_id=actor.user_id,
        actor_name=actor.name,
        via=actor.via,
        action=opinion.action,
        version=opinion.version,
        digest=opinion.digest,
        payload_digest=opinion.payload_digest,
        comment=interrupt.comment,
    )
    locked.tool_call.refresh_from_db(fields=["args_digest"])
    data = {
        "decision": opinion.action,
        "version": opinion.version,
        "digest": opinion.digest,
        "tool": locked.tool_call.tool,
        "risk": interrupt.risk,
        "args_before": args_before,
        "args_after": locked.tool_call.args_digest,
    }
    ports.audit().record([_entry("interrupt.decided", actor, interrupt, data)])
    return interrupt


def _check_shape(interrupt: Interrupt, opinion: Opinion) -> None:
    allowed = ALLOWED_ACTIONS[InterruptKind(interrupt.kind)]
    if opinion.action not in allowed:
        raise InvalidPayload(
            f"action: this request takes {', '.join(allowed)}, not {opinion.action}.",
            field="action",
        )
    if opinion.action == "edit" and opinion.args is None:
        raise InvalidPayload("args: an edit needs the arguments that shall run.", field="args")
    if opinion.action != "edit" and opinion.args is not None:
        raise InvalidPayload("args: only an edit takes arguments; nothing was done.", field="args")
    if opinion.action == "respond" and opinion.response is None:
        raise InvalidPayload("response: an answer is needed.", field="response")
    if opinion.action != "respond" and opinion.response is not None:
        raise InvalidPayload("response: only respond takes an answer.", field="response")
    if len(opinion.reason) > REASON_MAX:
        raise InvalidPayload(f"reason: at most {REASON_MAX} characters.", field="reason")


def _refuse(actor: Actor, interrupt: Interrupt, ruling: Ruling, opinion: Opinion) -> NoReturn:
    """Keep the attempt, which the transaction before did not change, then say no."""
    with transaction.atomic():
        data = {"decision": opinion.action, "version": opinion.version, "reason": ruling.reason}
        ports.audit().record([_entry("decision.denied", actor, interrupt, data)])
    raise NotAllowed(ruling.reason) if ruling.visible else NotFound(ruling.reason)


def _entry(action: str, actor: Actor, interrupt: Interrupt, data: dict[str, Any]) -> Audit:
    return Audit(
        action=action,
        actor=actor,
        object_type="interrupt",
        object_id=str(interrupt.id),
        project_id=interrupt.project_id,
        run_id=interrupt.run_id,
        data=data,
    )

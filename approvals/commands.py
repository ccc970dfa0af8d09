"""What people may do in the inbox: decide. Each write is one transaction with the run's row locked
first.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from django.db import connection, transaction

from approvals.models import Decision, Viewing
from approvals.policy import HIDDEN
from approvals.rulings import ruling_on
from runtime_core import decisions, ports
from runtime_core.errors import InvalidPayload, NotAllowed, NotFound
from runtime_core.models import Interrupt
from runtime_core.sanitize import canonical, storable
from runtime_core.states import ALLOWED_ACTIONS, InterruptKind, InterruptStatus
from runtime_core.transactions import one_commit
from runtime_core.values import Actor, Audit, Json

REASON_MAX = 4_000
# Below the statement timeout, far above what fifty at once take.
LOCK_TIMEOUT = "8s"


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
    NotAllowed (both kept in the audit), StaleVersion, AlreadyDecided, Withdrawn, Expired,
    InvalidPayload; then nothing was changed.
    """
    interrupt = _find(interrupt_id)
    try:
        return _decide(actor, interrupt, opinion, token_project)
    except (NotAllowed, NotFound) as refusal:
        _keep_denial(actor, interrupt, opinion, refusal)
        raise


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
    interrupt = _find(interrupt_id)
    try:
        _require_right(actor, interrupt, token_project)
    except (NotAllowed, NotFound) as refusal:
        _keep_denial(actor, interrupt, opinion, refusal)
        raise


def record_viewing(actor: Actor, interrupt: Interrupt) -> None:
    """Keep in the audit that `actor` was shown raw arguments; once for a person and version."""
    if actor.user_id is None:
        return
    with one_commit("viewed"):
        _, is_first = Viewing.objects.get_or_create(
            interrupt=interrupt, user_id=actor.user_id, version=interrupt.version
        )
        if is_first:
            data = {"version": interrupt.version, "digest": interrupt.digest}
            ports.audit().record([_entry("interrupt.viewed", actor, interrupt, data)])


def _find(interrupt_id: uuid.UUID) -> Interrupt:
    found = Interrupt.objects.select_related("run", "tool_call").filter(id=interrupt_id).first()
    if found is None:
        raise NotFound(HIDDEN.reason)
    return found


def _decide(
    actor: Actor, interrupt: Interrupt, opinion: Opinion, token_project: uuid.UUID | None
) -> Interrupt:
    if interrupt.status == InterruptStatus.OPEN:
        with one_commit("decide"):
            _wait_in_line()
            locked = decisions.lock(interrupt.id)
            interrupt = locked.interrupt
            interrupt.run = locked.run
            if interrupt.status == InterruptStatus.OPEN:
                _require_right(actor, interrupt, token_project)
                transaction.on_commit(lambda: decisions.wake(locked.run))
                return _settle(actor, locked, opinion)
    # Settled is for good: who came too late is answered without keeping others from the lock.
    return _answer_late(actor, interrupt, opinion, token_project)


def _wait_in_line() -> None:
    """Many may want to decide at once; the last of them gets a conflict, not a lock's timeout."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [LOCK_TIMEOUT])


def _require_right(actor: Actor, interrupt: Interrupt, token_project: uuid.UUID | None) -> None:
    ruling = ruling_on(interrupt, actor.user_id, token_project)
    if not ruling.may:
        raise NotAllowed(ruling.reason) if ruling.visible else NotFound(ruling.reason)


def _answer_late(
    actor: Actor, interrupt: Interrupt, opinion: Opinion, token_project: uuid.UUID | None
) -> Interrupt:
    """The settled interrupt for a repeat by who settled it; a refusal or conflict for the rest."""
    _require_right(actor, interrupt, token_project)
    if not _is_repeat(actor, interrupt, opinion):
        current = decisions.Locked(interrupt.run, interrupt, interrupt.tool_call)
        decisions.check_current(current, opinion.version, opinion.digest)
    return interrupt


def _is_repeat(actor: Actor, interrupt: Interrupt, opinion: Opinion) -> bool:
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


def _keep_denial(
    actor: Actor, interrupt: Interrupt, opinion: Opinion, refusal: NotAllowed | NotFound
) -> None:
    """Keep the attempt, of which nothing else is left, in a transaction of its own."""
    data = {"decision": opinion.action, "version": opinion.version, "reason": refusal.message}
    with one_commit("denied"):
        ports.audit().record([_entry("decision.denied", actor, interrupt, data)])


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

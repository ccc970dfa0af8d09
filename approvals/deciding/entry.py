"""The way in of every write in the inbox: find, lock, ask for the right, keep what was refused."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

from approvals.deciding.opinion import Opinion
from approvals.deciding.records import record
from approvals.people.rulings import may_override, ruling_on
from approvals.policy.rules import HIDDEN
from runtime_core import decisions
from runtime_core.decisions import Locked
from runtime_core.errors import NotAllowed, NotFound
from runtime_core.models import Interrupt
from runtime_core.transactions import one_commit
from runtime_core.values import Actor

# Below the statement timeout, far above what fifty at once take.
LOCK_TIMEOUT = "8s"


def find(interrupt_id: uuid.UUID) -> Interrupt:
    """The interrupt with its run and call; NotFound, which says nothing, if there is none."""
    related = ("run", "run__agent", "tool_call")
    found = Interrupt.objects.select_related(*related).filter(id=interrupt_id).first()
    if found is None:
        raise NotFound(HIDDEN.reason)
    return found


def lock(interrupt: Interrupt) -> Locked:
    """Run, interrupt and call, locked and read afresh until the transaction ends."""
    _wait_in_line()
    locked = decisions.lock(interrupt.id)
    locked.run.agent = interrupt.run.agent
    locked.interrupt.run = locked.run
    locked.interrupt.tool_call = locked.tool_call
    return locked


def require_right(
    actor: Actor,
    interrupt: Interrupt,
    token_project: uuid.UUID | None,
    *,
    past_policy: bool = False,
    for_edit: bool = False,
) -> None:
    """Pass if `actor` may decide right now (as a superuser, past the policy); else NotAllowed or NotFound."""
    ruling = ruling_on(interrupt, actor.user_id, token_project, is_machine=actor.is_machine)
    if past_policy and ruling.visible:
        if may_override(interrupt, actor.user_id) and not actor.is_machine:
            return
        raise NotAllowed("Only a superuser may decide past the approval policy.")
    # Who may not decide on what they wrote themselves may still write it anew.
    if not ruling.may and not (for_edit and ruling.is_own_edit):
        raise NotAllowed(ruling.reason) if ruling.visible else NotFound(ruling.reason)


def require_visible(actor: Actor, interrupt: Interrupt, token_project: uuid.UUID | None) -> None:
    """Pass if `actor` may know of the interrupt."""
    if not ruling_on(interrupt, actor.user_id, token_project).visible:
        raise NotFound(HIDDEN.reason)


@contextmanager
def denials_kept(actor: Actor, interrupt: Interrupt, opinion: Opinion) -> Iterator[None]:
    """Keep in the audit that `actor` was refused, of which nothing else is left."""
    try:
        yield
    except (NotAllowed, NotFound) as refusal:
        with one_commit("denied"):
            record(
                "decision.denied",
                actor,
                interrupt,
                decision=opinion.action,
                version=opinion.version,
                reason=refusal.message,
            )
        raise


def _wait_in_line() -> None:
    """Many may want to decide at once; the last of them gets a conflict, not a lock's timeout."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [LOCK_TIMEOUT])

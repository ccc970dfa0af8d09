"""What people may do in the inbox: decide. Each write is one transaction with the run's row locked
first.
"""

from __future__ import annotations

import uuid

from django.db import transaction

from approvals.deciding import changing, entry, revisions
from approvals.deciding.opinion import REASON_MAX, Opinion, check_shape
from approvals.deciding.records import keep_decision, record, votes_on
from approvals.models import Decision, Viewing
from approvals.people import seats
from approvals.policy import stored as policies
from runtime_core import decisions, revising
from runtime_core.decisions import Locked
from runtime_core.errors import InvalidPayload
from runtime_core.models import Interrupt
from runtime_core.states import InterruptStatus
from runtime_core.transactions import one_commit
from runtime_core.values import Actor

__all__ = ["REASON_MAX", "Opinion", "admit", "decide", "override", "record_viewing"]


def decide(
    actor: Actor,
    interrupt_id: uuid.UUID,
    opinion: Opinion,
    *,
    token_project: uuid.UUID | None = None,
    undoable: bool = False,
) -> Interrupt:
    """Give a vote, and settle the interrupt once it has as many as its policy requires.

    What is settled sets the run going if nothing else is open; with `undoable`, only when the policy's
    time to take it back is over. The same person's identical repeat returns the interrupt again. Raises
    NotFound, NotAllowed (both kept in the audit), StaleVersion, AlreadyDecided, Withdrawn, Expired,
    InvalidPayload; then nothing was changed.
    """
    interrupt = entry.find(interrupt_id)
    with entry.denials_kept(actor, interrupt, opinion):
        changing.keep_current(interrupt)
        return _decide(actor, interrupt, opinion, token_project, undoable=undoable)


def override(
    actor: Actor,
    interrupt_id: uuid.UUID,
    opinion: Opinion,
    *,
    token_project: uuid.UUID | None = None,
) -> Interrupt:
    """Settle an interrupt alone and past its policy: for superusers, who must say why. Otherwise as `decide`."""
    interrupt = entry.find(interrupt_id)
    with entry.denials_kept(actor, interrupt, opinion):
        return _decide(actor, interrupt, opinion, token_project, past_policy=True)


def admit(
    actor: Actor,
    interrupt_id: uuid.UUID,
    opinion: Opinion,
    *,
    token_project: uuid.UUID | None = None,
    past_policy: bool = False,
    for_edit: bool = False,
) -> None:
    """Pass if `actor` may decide as things are; NotFound or NotAllowed, kept in the audit, if not.

    Only to answer early: `decide` asks again under the lock.
    """
    interrupt = entry.find(interrupt_id)
    with entry.denials_kept(actor, interrupt, opinion):
        changing.keep_current(interrupt)
        entry.require_right(
            actor, interrupt, token_project, past_policy=past_policy, for_edit=for_edit
        )


def record_viewing(actor: Actor, interrupt: Interrupt) -> None:
    """Keep in the audit that `actor` was shown raw arguments; once for a person and version."""
    if actor.user_id is None:
        return
    with one_commit("viewed"):
        _, is_first = Viewing.objects.get_or_create(
            interrupt=interrupt, user_id=actor.user_id, version=interrupt.version
        )
        if is_first:
            record(
                "interrupt.viewed",
                actor,
                interrupt,
                version=interrupt.version,
                digest=interrupt.digest,
            )


def _decide(
    actor: Actor,
    interrupt: Interrupt,
    opinion: Opinion,
    token_project: uuid.UUID | None,
    *,
    undoable: bool = False,
    past_policy: bool = False,
) -> Interrupt:
    if interrupt.status == InterruptStatus.OPEN:
        with one_commit("decide"):
            locked = entry.lock(interrupt)
            interrupt = locked.interrupt
            if interrupt.status == InterruptStatus.OPEN:
                entry.require_right(actor, interrupt, token_project, past_policy=past_policy)
                if _is_repeat(actor, interrupt, opinion):
                    return interrupt
                transaction.on_commit(lambda: decisions.wake(locked.run))
                return _vote(actor, locked, opinion, undoable, past_policy)
    # Settled is for good: who came too late is answered without keeping others from the lock.
    return _answer_late(actor, interrupt, opinion, token_project, past_policy)


def _answer_late(
    actor: Actor,
    interrupt: Interrupt,
    opinion: Opinion,
    token_project: uuid.UUID | None,
    past_policy: bool,
) -> Interrupt:
    """The settled interrupt for a repeat by who settled it; a refusal or conflict for the rest."""
    entry.require_right(actor, interrupt, token_project, past_policy=past_policy, for_edit=True)
    if not _is_repeat(actor, interrupt, opinion):
        current = Locked(interrupt.run, interrupt, interrupt.tool_call)
        decisions.check_current(current, opinion.version, opinion.digest)
    return interrupt


def _is_repeat(actor: Actor, interrupt: Interrupt, opinion: Opinion) -> bool:
    return Decision.objects.filter(
        interrupt=interrupt,
        actor_id=actor.user_id,
        version=interrupt.version,
        payload_digest=opinion.payload_digest,
    ).exists()


def _vote(
    actor: Actor, locked: Locked, opinion: Opinion, undoable: bool, past_policy: bool
) -> Interrupt:
    interrupt = locked.interrupt
    decisions.check_current(locked, opinion.version, opinion.digest)
    check_shape(interrupt, opinion)
    if past_policy and not opinion.reason.strip():
        raise InvalidPayload("reason: say why you decide past the policy.", field="reason")
    args_before, shown = locked.tool_call.args_digest, (opinion.version, opinion.digest)
    if opinion.action == "edit":
        before = policies.terms_of(interrupt)
        changing.change_args(locked, actor, opinion, revisions.EDITED)
        if not past_policy and not changing.may_settle(actor, interrupt, before):
            changing.keep_proposal(locked, actor, opinion)
            return interrupt
    votes = votes_on(interrupt)
    seat = seats.free(interrupt, actor, votes)
    keep_decision(interrupt, actor, opinion, overridden=past_policy, seat_id=seat)
    acting = seats.acting(actor, seat)
    settles = opinion.action in ("respond", "reject")
    if settles or past_policy or len(votes) + 1 >= interrupt.required:
        _settle(locked, acting, opinion, undoable=undoable and not past_policy)
    else:
        done = "changed and approved" if opinion.action == "edit" else "approved"
        so_far = f"{len(votes) + 1} of {interrupt.required}"
        revising.tell(locked, f"{acting.name} {done} {locked.tool_call.tool} ({so_far})")
    record(
        "interrupt.overridden" if past_policy else "interrupt.decided",
        actor,
        interrupt,
        decision=opinion.action,
        version=shown[0],
        digest=shown[1],
        tool=locked.tool_call.tool,
        risk=interrupt.risk,
        args_before=args_before,
        args_after=locked.tool_call.args_digest,
        votes=len(votes) + 1,
        required=interrupt.required,
        policy=str(interrupt.policy) if interrupt.policy else None,
        reason=opinion.reason if past_policy else "",
        in_place_of=seat if seat != actor.user_id else None,
    )
    return interrupt


def _settle(locked: Locked, actor: Actor, opinion: Opinion, *, undoable: bool) -> None:
    terms = policies.terms_of(locked.interrupt)
    decisions.settle(
        locked,
        actor=actor,
        action=opinion.action,
        response=opinion.response,
        reason=opinion.reason,
        compensate=opinion.compensate,
        undo_seconds=terms.undo_seconds if undoable else 0,
    )

"""What changes a request without settling it: other arguments, another policy, a decision taken back."""

from __future__ import annotations

import uuid
from dataclasses import replace

from django.db import transaction

from approvals.deciding import entry, revisions
from approvals.deciding.opinion import Opinion, check_shape
from approvals.deciding.records import keep_decision, record, votes_on
from approvals.people import widening
from approvals.people.rulings import ruling_on
from approvals.policy import stored as policies
from approvals.terms import Terms, demands_more
from runtime_core import decisions, revising
from runtime_core.decisions import Locked
from runtime_core.errors import NotAllowed
from runtime_core.models import Interrupt
from runtime_core.states import InterruptStatus
from runtime_core.transactions import one_commit
from runtime_core.values import SYSTEM, Actor


def propose(
    actor: Actor,
    interrupt_id: uuid.UUID,
    opinion: Opinion,
    *,
    token_project: uuid.UUID | None = None,
) -> Interrupt:
    """Put other arguments up for decision, as the next version, without deciding. Raises as `decide` does."""
    interrupt = entry.find(interrupt_id)
    with entry.denials_kept(actor, interrupt, opinion):
        keep_current(interrupt)
        with one_commit("propose"):
            locked = entry.lock(interrupt)
            entry.require_right(actor, locked.interrupt, token_project, for_edit=True)
            decisions.check_current(locked, opinion.version, opinion.digest)
            check_shape(locked.interrupt, opinion)
            change_args(locked, actor, opinion, revisions.PROPOSED)
            keep_proposal(locked, actor, replace(opinion, action="propose"))
            transaction.on_commit(lambda: decisions.wake(locked.run))
            return locked.interrupt


def undo(
    actor: Actor,
    interrupt_id: uuid.UUID,
    version: int,
    *,
    token_project: uuid.UUID | None = None,
) -> Interrupt:
    """Take back what `actor` decided on this version, before it has an effect; the interrupt opens again.

    Votes that were given with it count no more. Raises NotFound, NotAllowed, StaleVersion, UndoClosed.
    """
    interrupt = entry.find(interrupt_id)
    opinion = Opinion("undo", version, interrupt.digest)
    with entry.denials_kept(actor, interrupt, opinion), one_commit("undo"):
        locked = entry.lock(interrupt)
        entry.require_visible(actor, locked.interrupt, token_project)
        revising.check_undoable(locked, version)
        _require_own_vote(actor, locked.interrupt)
        _reopen(locked, actor, opinion)
        transaction.on_commit(lambda: decisions.wake(locked.run))
        return locked.interrupt


def admit_undo(
    actor: Actor,
    interrupt_id: uuid.UUID,
    version: int,
    *,
    token_project: uuid.UUID | None = None,
) -> None:
    """Pass if `actor` has a decision to take back as things are. Only to answer early: `undo` asks again."""
    interrupt = entry.find(interrupt_id)
    with entry.denials_kept(actor, interrupt, Opinion("undo", version, interrupt.digest)):
        entry.require_visible(actor, interrupt, token_project)
        if version == interrupt.version:
            _require_own_vote(actor, interrupt)


def keep_current(interrupt: Interrupt) -> None:
    """Put an open interrupt under the policy that applies now, as its next version if that asks for
    something else of the people who decide.
    """
    if interrupt.status != InterruptStatus.OPEN or not _is_outdated(interrupt):
        return
    with one_commit("rebind"):
        locked = entry.lock(interrupt)
        if locked.interrupt.status == InterruptStatus.OPEN and _is_outdated(locked.interrupt):
            _rebind(locked)
            transaction.on_commit(lambda: decisions.wake(locked.run))


def change_args(locked: Locked, actor: Actor, opinion: Opinion, cause: str) -> None:
    """Other arguments as the next version, under the policy that applies to them."""
    revisions.keep(locked, revisions.ASKED)
    before = policies.terms_of(locked.interrupt)
    revising.change(locked, actor, dict(opinion.args or {}))
    found = policies.stored(policies.resolved_now(locked.interrupt))
    if found.terms != locked.interrupt.terms and _is_bound(locked.interrupt, found.policy):
        revising.rebind(locked, found, next_version=False)
        widening.close(locked.interrupt, before, policies.terms_of(locked.interrupt))
    revisions.keep(locked, cause, actor, opinion.reason)


def may_settle(actor: Actor, interrupt: Interrupt, before: Terms) -> bool:
    """False where the new arguments fall under stricter terms, or may not be decided by their editor."""
    now = policies.terms_of(interrupt)
    ruling = ruling_on(interrupt, actor.user_id, is_machine=actor.is_machine)
    return ruling.may and not demands_more(now, before)


def keep_proposal(locked: Locked, actor: Actor, opinion: Opinion) -> None:
    """Keep and tell that these arguments now wait to be decided on."""
    interrupt = locked.interrupt
    keep_decision(interrupt, actor, opinion, action="propose")
    tool = locked.tool_call.tool
    revising.tell(locked, f"{actor.name} proposed other arguments for {tool}")
    record(
        "interrupt.proposed",
        actor,
        interrupt,
        version=interrupt.version,
        digest=interrupt.digest,
        tool=tool,
        args_after=locked.tool_call.args_digest,
        required=interrupt.required,
        policy=str(interrupt.policy) if interrupt.policy else None,
    )


def _require_own_vote(actor: Actor, interrupt: Interrupt) -> None:
    mine = [vote for vote in votes_on(interrupt) if vote.actor_id == actor.user_id]
    # A person may take back what their token decided, but no token what the person did.
    if not mine or (actor.is_machine and all(vote.via != actor.via for vote in mine)):
        raise NotAllowed("Only somebody who decided may take that decision back.")


def _reopen(locked: Locked, actor: Actor, opinion: Opinion) -> None:
    interrupt = locked.interrupt
    keep_decision(interrupt, actor, opinion, action="undo")
    undone = interrupt.version
    kept = {revision.version: revision for revision in revisions.of(interrupt)}
    # One's own edit is taken back to what it changed; anything else leaves what was decided on.
    last = kept.get(undone)
    if last and last.cause == revisions.EDITED and last.actor_id == actor.user_id:
        last = kept.get(undone - 1, last)
    revising.reopen(
        locked,
        last.args_text if last else locked.tool_call.args_text,
        editor_id=last.editor_id if last else interrupt.changed_by_id,
        is_edited=last.is_edited if last else "edited_args" in interrupt.detail,
    )
    revisions.keep(locked, revisions.UNDONE, actor)
    revising.tell(locked, f"{actor.name} took the decision on {locked.tool_call.tool} back")
    record("interrupt.undone", actor, interrupt, version=undone, reopened_as=interrupt.version)


def _rebind(locked: Locked) -> None:
    interrupt = locked.interrupt
    before = policies.terms_of(interrupt)
    resolution = policies.resolved_now(interrupt)
    is_new = resolution.terms.deciding != before.deciding
    revisions.keep(locked, revisions.ASKED)
    policy_before = interrupt.policy
    revising.rebind(locked, policies.stored(resolution), next_version=is_new)
    widening.close(interrupt, before, resolution.terms)
    if is_new:
        revisions.keep(locked, revisions.POLICY)
        revising.tell(locked, f"Another approval policy applies to {locked.tool_call.tool} now")
    record(
        "interrupt.rebound",
        SYSTEM,
        interrupt,
        version=interrupt.version,
        policy_before=str(policy_before) if policy_before else None,
        policy_after=str(interrupt.policy) if interrupt.policy else None,
        required=interrupt.required,
    )


def _is_outdated(interrupt: Interrupt) -> bool:
    found = policies.stored(policies.resolved_now(interrupt))
    differs = found.policy != interrupt.policy or found.terms != interrupt.terms
    return differs and _is_bound(interrupt, found.policy)


def _is_bound(interrupt: Interrupt, policy: uuid.UUID | None) -> bool:
    """One from before there were policies keeps what it promised until a policy names it."""
    return bool(interrupt.terms) or policy is not None

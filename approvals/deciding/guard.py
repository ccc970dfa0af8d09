"""Asked right before an approved call runs: does the decision still stand, with all who made it?"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from approvals.deciding.records import votes_on
from approvals.models import Decision
from approvals.people.rulings import may_override, ruling_on
from approvals.people.seats import still_holds
from approvals.policy import stored as policies
from approvals.terms import Terms
from runtime_core.models import Agent, Interrupt, Run, ToolCall
from runtime_core.prepared import joined


class Guard:
    """The decision guard that `runtime_core.ports` binds."""

    def revoked(self, interrupt_id: uuid.UUID) -> str | None:
        """None if the decision still stands under the policy that applies now, else why it does not."""
        interrupt = _read(interrupt_id)
        if interrupt is None:
            return "The decision is gone, so the call was not run."
        votes = votes_on(interrupt)
        if not votes or any(vote.actor_id is None for vote in votes):
            return "Nobody stands behind the decision any more, so the call was not run."
        if any(vote.overridden for vote in votes):
            return _override_revoked(interrupt, votes)
        return _votes_revoked(interrupt, votes, _terms_now(interrupt))


def guard() -> Guard:
    """The guard of this process."""
    return Guard()


def _read(interrupt_id: uuid.UUID) -> Interrupt | None:
    """The interrupt with its run, agent and call; None if it is gone."""
    found = joined([Interrupt, Run, Agent, ToolCall], _WHOLE, interrupt=interrupt_id)
    if not found:
        return None
    interrupt, run, agent, call = found[0]
    run.agent, interrupt.run, interrupt.tool_call = agent, run, call
    whole: Interrupt = interrupt
    return whole


_WHOLE = """
FROM interrupt JOIN run ON run.id = interrupt.run_id JOIN agent ON agent.id = run.agent_id
JOIN tool_call ON tool_call.id = interrupt.tool_call_id
WHERE interrupt.id = %(interrupt)s
"""


def _terms_now(interrupt: Interrupt) -> Terms:
    resolution = policies.resolved_now(interrupt)
    if interrupt.terms or resolution.policy:
        return resolution.terms
    return policies.terms_of(interrupt)


def _override_revoked(interrupt: Interrupt, votes: Sequence[Decision]) -> str | None:
    for vote in votes:
        if vote.overridden and may_override(interrupt, vote.actor_id):
            return None
    return "Who decided past the policy is no superuser any more; the call was not run."


def _votes_revoked(interrupt: Interrupt, votes: Sequence[Decision], terms: Terms) -> str | None:
    before = policies.terms_of(interrupt)
    for vote in votes:
        is_machine = vote.via == "machine"
        now = ruling_on(interrupt, vote.actor_id, is_machine=is_machine, terms=terms)
        if still_holds(vote, now):
            continue
        if still_holds(
            vote, ruling_on(interrupt, vote.actor_id, is_machine=is_machine, terms=before)
        ):
            who = f"{vote.actor_name}, who decided, may not"
            return f"The approval policy changed: {who} decide under it; the call was not run."
        return f"{vote.actor_name}, who decided, no longer has the right to; the call was not run."
    if len(votes) < terms.required:
        return (
            f"The approval policy changed: it requires {terms.required} people now and {len(votes)} "
            "decided; the call was not run."
        )
    return None

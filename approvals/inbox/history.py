"""What the pages say of a request's past: versions, votes, and what of it may still be taken back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from approvals.inbox import showing
from approvals.inbox.showing import Change
from approvals.models import ApprovalPolicy, Decision, Revision
from approvals.people.rulings import may_override
from approvals.queries import Shown, votes_of
from runtime_core import clock
from runtime_core.models import Interrupt
from runtime_core.states import InterruptStatus
from runtime_core.tools import ledger

_CAUSES = {
    "asked": "Asked by the agent",
    "edited": "Changed and approved",
    "proposed": "Changed, to be decided on",
    "undone": "Decision taken back",
    "policy": "Another approval policy applies",
}
_ACTIONS = {
    "approve": "approved",
    "edit": "changed and approved",
    "respond": "answered",
    "reject": "rejected",
}


@dataclass(frozen=True, slots=True)
class Version:
    """One version as the history shows it: redacted, with what it changed of the one before."""

    row: Revision
    words: str
    changes: Sequence[Change]
    stands: bool


@dataclass(frozen=True, slots=True)
class Voice:
    """One decision as the pages show it."""

    row: Decision
    words: str


def detail_context(shown: Shown) -> dict[str, Any]:
    """Votes, versions and what the viewer may do beside deciding."""
    interrupt, viewer_id = shown.interrupt, getattr(shown.viewer, "pk", None)
    votes = votes_of(interrupt)
    mine = next((vote for vote in votes if vote.actor_id == viewer_id), None)
    is_open = interrupt.status == InterruptStatus.OPEN
    is_undoable = interrupt.undo_until is not None and interrupt.undo_until > clock.now()
    revisions = list(interrupt.revisions.all())
    return {
        "votes": [Voice(vote, _ACTIONS[vote.action]) for vote in votes],
        "my_vote": mine,
        "missing": max(0, interrupt.required - len(votes)) if is_open else 0,
        "can_undo": mine is not None and (is_open or is_undoable),
        "versions": _versions(revisions, interrupt),
        "edits": _edits(revisions, shown),
        "drift": _drift(interrupt),
        "policy_name": _policy_name(interrupt),
        "can_override": _can_override(shown),
    }


def _versions(revisions: Sequence[Revision], interrupt: Interrupt) -> list[Version]:
    found: list[Version] = []
    before: Revision | None = None
    for row in revisions:
        changed = showing.changes(before.args_redacted, row.args_redacted) if before else []
        found.append(Version(row, _CAUSES[row.cause], changed, row.version == interrupt.version))
        before = row
    return found


def _edits(revisions: Sequence[Revision], shown: Shown) -> list[Change]:
    """What people changed of the arguments that the agent asked for, as exactly as the viewer may see it."""
    if not revisions:
        return []
    asked = revisions[0]
    before = ledger.args_in(asked.args_text) if shown.is_raw else asked.args_redacted
    return showing.changes(before, shown.args)


def _drift(interrupt: Interrupt) -> list[Change]:
    """What is other than what people last let run."""
    found = interrupt.detail.get("changes") or []
    return showing.changes(
        {one["what"]: one["before"] for one in found}, {one["what"]: one["after"] for one in found}
    )


def _policy_name(interrupt: Interrupt) -> str:
    if interrupt.policy is None:
        return "the defaults"
    row = ApprovalPolicy.objects.filter(id=interrupt.policy).first()
    return str(row) if row else "a policy that is gone"


def _can_override(shown: Shown) -> bool:
    """Offered to a superuser where deciding in the ordinary way would not settle it."""
    if shown.interrupt.status != InterruptStatus.OPEN or shown.interrupt.expires_at <= clock.now():
        return False
    is_ordinary = shown.ruling.may and shown.interrupt.required == 1
    return not is_ordinary and may_override(shown.interrupt, getattr(shown.viewer, "pk", None))

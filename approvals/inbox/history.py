"""What the pages say of a request's past and its terms: versions, votes, and why which policy applies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model

from approvals.inbox import showing
from approvals.inbox.showing import Change
from approvals.models import ApprovalPolicy, ApproverGroup, Decision, Revision
from approvals.people.rulings import may_override
from approvals.policy import stored as policies
from approvals.policy.rules import Considered
from approvals.queries import Shown, votes_of
from approvals.terms import ESCALATE, Terms
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


def policy_context(interrupt: Interrupt) -> dict[str, Any]:
    """The policy that a request stands under, in words, and why the others do not apply."""
    now = policies.resolved_now(interrupt)
    row = ApprovalPolicy.objects.filter(id=interrupt.policy).first() if interrupt.policy else None
    terms = policies.terms_of(interrupt)
    return {
        "interrupt": interrupt,
        "call": interrupt.tool_call,
        "run": interrupt.run,
        "policy": row,
        "terms": in_words(terms),
        "is_before_policies": not interrupt.terms,
        "considered": sorted(now.considered, key=_most_specific_first),
        "now": now.policy,
        "has_changed": (now.policy.id if now.policy else None) != interrupt.policy,
    }


def in_words(terms: Terms) -> list[tuple[str, str]]:
    """The terms as pairs of what and how."""
    people = f"{terms.required} different people" if terms.required > 1 else "One person"
    undo = (
        f"For {terms.undo_seconds} seconds, if decided on the page" if terms.undo_seconds else "No"
    )
    expiry = "escalated" if terms.on_expiry == ESCALATE else "rejected"
    return [
        ("It takes", f"{people} on the same version; one rejection ends it."),
        ("Who may", _whom(terms)),
        ("On the own run", _yes(terms.requester_may)),
        ("On own changes", _yes(terms.editor_may)),
        ("Service tokens", _yes(terms.machines_may)),
        ("Time to decide", f"{_minutes(terms.expires_minutes)}, then it is {expiry}."),
        ("Taking back", undo),
        ("Remembering", _yes(terms.remember_may)),
        *((f"After {_minutes(step['after_minutes'])}", _step(step)) for step in terms.escalation),
    ]


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


def _most_specific_first(one: Considered) -> tuple[bool, tuple[int, ...]]:
    return bool(one.why_not), tuple(-n for n in one.policy.specificity)


def _whom(terms: Terms) -> str:
    if terms.is_open_to_all:
        return "Approvers and admins of the project"
    users = get_user_model().objects.filter(pk__in=terms.people).order_by("username")
    groups = ApproverGroup.objects.filter(pk__in=terms.groups).order_by("name")
    named = [
        *(f"role {role}" for role in terms.roles),
        *(f"group {name}" for name in groups.values_list("name", flat=True)),
        *users.values_list("username", flat=True),
    ]
    return ", ".join(named) or "Nobody who is still here"


def _step(step: Any) -> str:
    named = [name for key in ("roles", "groups", "people") for name in step.get(key, [])]
    return f"{step['action']}: {', '.join(named)}" if named else str(step["action"])


def _minutes(minutes: int) -> str:
    if minutes % 60 == 0:
        return f"{minutes // 60} h"
    return f"{minutes} min"


def _yes(flag: bool) -> str:
    return "Yes" if flag else "No"

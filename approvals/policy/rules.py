"""Which approval policy applies to a call, and who may decide under it: pure functions of values, no
rows, no clock.

The most specific policy wins: by tool (its own name above a longer pattern above a shorter above any),
then by conditions on arguments, then by agent (the same order), by risk, by project. Between equals the
one that requires more people, then the older one.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from approvals.terms import Terms, defaults
from runtime_core.access import Can
from runtime_core.tools.constraint import BROKEN, FAILS, evaluate
from runtime_core.values import Asked, Json, Risk, Verdict


@dataclass(frozen=True, slots=True)
class Policy:
    """One version of a policy: what it is for, and the terms that it sets. Empty: any."""

    id: uuid.UUID
    lineage: uuid.UUID
    name: str
    number: int
    terms: Terms
    project: uuid.UUID | None = None
    agent: str = ""
    tool: str = ""
    risk: str = ""
    conditions: Mapping[str, Json] = field(default_factory=dict)

    @property
    def specificity(self) -> tuple[int, int, int, int, int]:
        """Higher is more specific."""
        return (
            _by_name(self.tool),
            int(bool(self.conditions)),
            _by_name(self.agent),
            int(bool(self.risk)),
            int(self.project is not None),
        )


@dataclass(frozen=True, slots=True)
class Considered:
    """One policy that was looked at, and why it does not apply; no reason for the one that does."""

    policy: Policy
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class Resolution:
    """The terms for a call, the policy that sets them (None: the defaults), and all that were looked at."""

    terms: Terms
    policy: Policy | None
    considered: tuple[Considered, ...]


@dataclass(frozen=True, slots=True)
class Person:
    """What is known of somebody who wants to decide, read from rows in the transaction that uses it."""

    user_id: int | None
    rights: frozenset[Can]
    roles: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    is_requester: bool = False
    is_editor: bool = False
    is_machine: bool = False


@dataclass(frozen=True, slots=True)
class Ruling:
    """Whether somebody may decide. `visible` False means: not even that it exists may be told."""

    may: bool
    visible: bool
    reason: str = ""
    stands_in_for: tuple[int, ...] = ()
    """Ids of those in whose place they may; none: in their own."""

    @property
    def is_own_edit(self) -> bool:
        """True if all that stands against it is that they wrote the arguments themselves."""
        return self is OWN_EDIT

    @property
    def is_not_asked(self) -> bool:
        """True if all that stands against it is that the terms name others."""
        return self in (WITHOUT_ROLE, NOT_NAMED)


HIDDEN = Ruling(may=False, visible=False, reason="There is no such request, or you may not see it.")
WITHOUT_ROLE = Ruling(
    may=False,
    visible=True,
    reason="You may see this request, but only approvers of this project decide. "
    "Ask a project admin for the approver role.",
)
NOT_NAMED = Ruling(
    may=False,
    visible=True,
    reason="You may see this request, but the approval policy names others to decide on it. "
    "Ask one of them, or an admin to change the policy.",
)
OWN_RUN = Ruling(
    may=False,
    visible=True,
    reason="You started this run, and under the approval policy a second person must decide on it. "
    "Ask another approver of this project.",
)
OWN_EDIT = Ruling(
    may=False,
    visible=True,
    reason="You changed these arguments, and under the approval policy somebody else must decide on "
    "them. Ask another approver of this project.",
)
NO_MACHINES = Ruling(
    may=False,
    visible=True,
    reason="A service token may not decide on this under the approval policy. Ask a person.",
)
LISTED = Ruling(may=False, visible=True, reason="Open the request to decide on it.")
MAY = Ruling(may=True, visible=True)


def resolve(policies: Sequence[Policy], asked: Asked) -> Resolution:
    """The policy that applies to a call, and why each of the others does not.

    A condition that cannot be judged counts as met where the policy requires more people than what
    applies without it.
    """
    reasons = {policy.id: _mismatch(policy, asked) for policy in policies}
    sure = [p for p in policies if not reasons[p.id]]
    winner = max(sure, key=_rank, default=None)
    terms = winner.terms if winner else defaults(asked.risk)
    unclear = [
        p
        for p in policies
        if reasons[p.id].startswith(_UNCLEAR) and p.terms.required > terms.required
    ]
    if unclear:
        winner = max(unclear, key=lambda p: (p.terms.required, _rank(p)))
        terms = winner.terms
    considered = tuple(
        Considered(p, "" if p is winner else reasons[p.id] or _outdone(winner)) for p in policies
    )
    return Resolution(terms, winner, considered)


def may_decide(person: Person, terms: Terms) -> Ruling:
    """The ruling for one person on one request, with the reason and the way out if it is no."""
    if Can.VIEW not in person.rights:
        return HIDDEN
    if not _is_named(person, terms):
        return WITHOUT_ROLE if terms.is_open_to_all else NOT_NAMED
    if person.is_machine and not terms.machines_may:
        return NO_MACHINES
    if person.is_requester and not terms.requester_may:
        return OWN_RUN
    if person.is_editor and not terms.editor_may:
        return OWN_EDIT
    return MAY


def _is_named(person: Person, terms: Terms) -> bool:
    if terms.is_open_to_all:
        return Can.DECIDE in person.rights
    return bool(
        person.user_id in terms.people
        or person.roles.intersection(terms.roles)
        or person.groups.intersection(terms.groups)
    )


_UNCLEAR = "It cannot be judged: "


def _mismatch(policy: Policy, asked: Asked) -> str:
    """Why the policy is not for this call; nothing if it is."""
    if policy.project not in (None, asked.project_id):
        return "It is for another project."
    if policy.tool and not fnmatchcase(asked.tool, policy.tool):
        return f"It is for the tool {policy.tool}, not {asked.tool}."
    if policy.agent and not fnmatchcase(asked.agent, policy.agent):
        return f"It is for the agent {policy.agent}, not {asked.agent}."
    if policy.risk and policy.risk != asked.risk:
        return f"It is for {policy.risk} risk; this is {asked.risk}."
    state, why = evaluate(policy.conditions, asked.args, asked.schema, Verdict.ASK)
    if state == FAILS:
        return f"Its condition does not hold: {why}."
    return f"{_UNCLEAR}{why}." if state == BROKEN else ""


def _outdone(winner: Policy | None) -> str:
    return f"It matches, but “{winner.name}” is more specific." if winner else ""


def _rank(policy: Policy) -> tuple[tuple[int, ...], int, int]:
    # Ids grow with time, so the older one has the smaller.
    return policy.specificity, policy.terms.required, -policy.lineage.int


def _by_name(pattern: str) -> int:
    if not pattern:
        return 0
    literal = pattern.translate({ord(c): None for c in "*?[]"})
    return 1_000 if literal == pattern else 1 + len(literal)


def needs_second_person(risk: Risk) -> bool:
    """True if by default the one who started the run may not decide at this risk."""
    return not defaults(risk).requester_may

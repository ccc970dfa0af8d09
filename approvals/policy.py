"""Who may decide on what: pure functions of values, no rows, no clock."""

from __future__ import annotations

from dataclasses import dataclass

from runtime_core.access import Can
from runtime_core.values import Risk

FOUR_EYES_FROM = Risk.HIGH


@dataclass(frozen=True, slots=True)
class Facts:
    """What the ruling depends on, read from rows by the caller in the transaction that uses it."""

    rights: frozenset[Can]
    is_requester: bool
    risk: Risk


@dataclass(frozen=True, slots=True)
class Ruling:
    """Whether somebody may decide. `visible` False means: not even that it exists may be told."""

    may: bool
    visible: bool
    reason: str = ""


HIDDEN = Ruling(may=False, visible=False, reason="There is no such request, or you may not see it.")
WITHOUT_ROLE = Ruling(
    may=False,
    visible=True,
    reason="You may see this request, but only approvers of this project decide. "
    "Ask a project admin for the approver role.",
)
OWN_RUN = Ruling(
    may=False,
    visible=True,
    reason="You started this run, and a second person must decide on high and critical risk. "
    "Ask another approver of this project.",
)
LISTED = Ruling(may=False, visible=True, reason="Open the request to decide on it.")
MAY = Ruling(may=True, visible=True)


def may_decide(facts: Facts) -> Ruling:
    """The ruling for one person on one interrupt, with the reason and the way out if it is no."""
    if Can.VIEW not in facts.rights:
        return HIDDEN
    if Can.DECIDE not in facts.rights:
        return WITHOUT_ROLE
    if facts.is_requester and needs_second_person(facts.risk):
        return OWN_RUN
    return MAY


def needs_second_person(risk: Risk) -> bool:
    """True if the one who started the run may not decide at this risk."""
    return risk.level >= FOUR_EYES_FROM.level

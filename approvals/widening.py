"""Whom the steps of a request's ladder have let decide on it: for one person, and as a condition for
lists.
"""

from __future__ import annotations

from django.db.models import Q, QuerySet

from approvals.models import EscalationStep
from approvals.policy import Person
from runtime_core.models import Interrupt

NOTIFY, WIDEN, RAISE = "notify", "widen", "raise"
_OPENING = (WIDEN, RAISE)


def steps_of(interrupt: Interrupt) -> QuerySet[EscalationStep]:
    """The steps that let others in."""
    return EscalationStep.objects.filter(interrupt=interrupt, action__in=_OPENING)


def widened(interrupt: Interrupt, person: Person) -> bool:
    """True if a step has let this person decide on the request."""
    return any(
        person.user_id in step.people
        or person.roles.intersection(step.roles)
        or person.groups.intersection(step.groups)
        for step in steps_of(interrupt)
    )


def let_in(user_id: int, roles: frozenset[str], groups: frozenset[str]) -> Q:
    """The same as a condition on the interrupts of projects where these are the person's roles and
    groups.
    """
    named = Q(people__contains=[user_id])
    for role in roles:
        named |= Q(roles__contains=[role])
    for group in groups:
        named |= Q(groups__contains=[group])
    steps = EscalationStep.objects.filter(named, action__in=_OPENING)
    return Q(pk__in=steps.values("interrupt_id"))

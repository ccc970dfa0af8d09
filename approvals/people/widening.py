"""Whom the steps of a request's ladder have let decide on it: for one person, and as a condition for
lists.
"""

from __future__ import annotations

from django.db.models import Q, QuerySet

from approvals.models import EscalationStep
from approvals.policy.rules import Person
from approvals.policy.steps import STEPS_MAX
from approvals.policy.stored import terms_of
from approvals.terms import ESCALATE, Terms
from runtime_core.models import Interrupt

NOTIFY, WIDEN, RAISE = "notify", "widen", "raise"
_OPENING = (WIDEN, RAISE)


def steps_of(interrupt: Interrupt) -> QuerySet[EscalationStep]:
    """The steps that let others in."""
    return EscalationStep.objects.filter(interrupt=interrupt, action__in=_OPENING)


def is_kept(number: int, before: Terms, now: Terms) -> bool:
    """True if a step that was taken under the terms `before` is one of `now` too."""
    if number >= STEPS_MAX:  # the one at the expiry
        return now.on_expiry == ESCALATE
    return now.escalation[number : number + 1] == before.escalation[number : number + 1]


def close(interrupt: Interrupt, before: Terms, now: Terms) -> None:
    """Forget the steps that other terms do not have; those that they have come in their own time."""
    for step in EscalationStep.objects.filter(interrupt=interrupt):
        if is_kept(step.step, before, now):
            continue
        if step.step < STEPS_MAX:
            step.delete()
        else:  # that there was more time, once, stays
            step.roles, step.groups, step.people = [], [], []
            step.save()


def widened(interrupt: Interrupt, person: Person, terms: Terms) -> bool:
    """True if a step that these terms have too has let this person decide on the request."""
    before = terms_of(interrupt)
    return any(
        person.user_id in step.people
        or person.roles.intersection(step.roles)
        or person.groups.intersection(step.groups)
        for step in steps_of(interrupt)
        if is_kept(step.step, before, terms)
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

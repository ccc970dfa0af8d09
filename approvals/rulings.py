"""Reads from the rows what the policy needs to know of a person, and asks it. Called inside the
transaction that acts on it.
"""

from __future__ import annotations

import uuid

from django.contrib.auth import get_user_model

from approvals.models import ApproverGroup
from approvals.policies import terms_of
from approvals.policy import HIDDEN, Person, Ruling, may_decide
from approvals.terms import Terms
from runtime_core.access import allowed
from runtime_core.models import Interrupt, Membership


def ruling_on(
    interrupt: Interrupt,
    user_id: int | None,
    token_project: uuid.UUID | None = None,
    *,
    is_machine: bool = False,
    terms: Terms | None = None,
) -> Ruling:
    """May this person decide on `interrupt` right now? Account, memberships and run are read afresh.

    Judged by the terms that the interrupt stands under, or by `terms`.
    """
    if token_project and token_project != interrupt.project_id:
        return HIDDEN
    person = person_of(interrupt, user_id, is_machine=is_machine)
    if person is None:
        return HIDDEN
    return may_decide(person, terms or terms_of(interrupt))


def person_of(
    interrupt: Interrupt, user_id: int | None, *, is_machine: bool = False
) -> Person | None:
    """What is known of somebody with regard to an interrupt; None if there is no such active account."""
    people = get_user_model().objects.filter(is_active=True)
    user = people.filter(pk=user_id).first() if user_id is not None else None
    if user is None:
        return None
    project_id = interrupt.project_id
    roles = Membership.objects.filter(user=user, project_id=project_id)
    groups = ApproverGroup.objects.filter(members=user, project_id=project_id)
    return Person(
        user_id=user.pk,
        rights=allowed(user, project_id),
        roles=frozenset(roles.values_list("role", flat=True)),
        groups=frozenset(str(group_id) for group_id in groups.values_list("id", flat=True)),
        is_requester=interrupt.run.created_by_id == user.pk,
        is_editor=interrupt.changed_by_id == user.pk,
        is_machine=is_machine,
    )


def may_override(interrupt: Interrupt, user_id: int | None) -> bool:
    """True for an active superuser, who may decide past the policy if they say why."""
    if user_id is None:
        return False
    people = get_user_model().objects.filter(is_active=True, is_superuser=True)
    return people.filter(pk=user_id).exists()

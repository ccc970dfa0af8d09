"""Reads from the rows what the policy needs to know of a person, and asks it. Called inside the
transaction that acts on it.
"""

from __future__ import annotations

import uuid
from dataclasses import replace

from django.contrib.auth import get_user_model

from approvals.people import delegation
from approvals.people.widening import widened
from approvals.policy.rules import HIDDEN, Person, Ruling, may_decide
from approvals.policy.stored import terms_of
from approvals.terms import Terms
from runtime_core import prepared
from runtime_core.access import rights_of
from runtime_core.models import Interrupt
from runtime_core.prepared import instances

_ROLES = "SELECT role FROM membership WHERE user_id = %(user)s AND project_id = %(project)s"
_GROUPS = """
SELECT one.id FROM approver_group AS one
JOIN approver_group_members AS member ON member.approvergroup_id = one.id
WHERE member.user_id = %(user)s AND one.project_id = %(project)s
"""


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
    terms = terms or terms_of(interrupt)
    ruling = may_decide(person, terms)
    return _let_in(interrupt, person, terms) or ruling if ruling.is_not_asked else ruling


def person_of(
    interrupt: Interrupt, user_id: int | None, *, is_machine: bool = False
) -> Person | None:
    """What is known of somebody with regard to an interrupt; None if there is no such active account."""
    return person_in(
        interrupt.project_id,
        user_id,
        requester_id=interrupt.run.created_by_id,
        editor_id=interrupt.changed_by_id,
        is_machine=is_machine,
    )


def person_in(
    project_id: uuid.UUID,
    user_id: int | None,
    *,
    requester_id: int | None,
    editor_id: int | None = None,
    is_machine: bool = False,
) -> Person | None:
    """The same with regard to a call that nobody was asked about."""
    # Asked right before each approved call runs, while everybody waits: no making of SQL.
    found = instances(get_user_model(), "WHERE id = %(user)s AND is_active", user=user_id)
    if not found:
        return None
    [user] = found
    whose = {"user": user.pk, "project": project_id}
    roles = frozenset(role for (role,) in prepared.rows(_ROLES, whose))
    return Person(
        user_id=user.pk,
        rights=rights_of(user, roles),
        roles=roles,
        groups=frozenset(str(group_id) for (group_id,) in prepared.rows(_GROUPS, whose)),
        is_requester=requester_id == user.pk,
        is_editor=editor_id == user.pk,
        is_machine=is_machine,
    )


def _let_in(interrupt: Interrupt, person: Person, terms: Terms) -> Ruling | None:
    """The ruling on somebody whom the terms do not name, but a step of the ladder or a delegation
    does; None if neither. Whatever else the terms demand holds for them too.
    """
    ruling = may_decide(person, _naming(person, terms))
    if widened(interrupt, person, terms):
        return ruling
    # Who is no member stands in for nobody: a superuser decides past the policy, with a reason.
    if person.user_id is None or person.is_machine or not person.roles:
        return None
    seats = [
        user_id
        for user_id in delegation.delegators(interrupt, person.user_id)
        if (other := person_of(interrupt, user_id)) and _may_self(interrupt, other, terms)
    ]
    if not seats:
        return None
    return replace(ruling, stands_in_for=tuple(seats)) if ruling.may else ruling


def _may_self(interrupt: Interrupt, person: Person, terms: Terms) -> bool:
    if widened(interrupt, person, terms):
        terms = _naming(person, terms)
    return may_decide(person, terms).may


def _naming(person: Person, terms: Terms) -> Terms:
    """The same terms as if they named this person alone."""
    return replace(terms, roles=(), groups=(), people=(person.user_id or 0,))


def may_override(interrupt: Interrupt, user_id: int | None) -> bool:
    """True for an active superuser, who may decide past the policy if they say why."""
    if user_id is None:
        return False
    people = get_user_model().objects.filter(is_active=True, is_superuser=True)
    return people.filter(pk=user_id).exists()

"""Whom policies name, as conditions on rows: the same rules as `policy.may_decide`, for many requests at once."""

from __future__ import annotations

import uuid
from collections import defaultdict
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Q, QuerySet

from approvals.models import ApprovalPolicy, ApproverGroup, Delegation
from approvals.people import delegation
from approvals.people.widening import let_in, steps_of
from approvals.policy.stored import terms_of
from approvals.terms import Terms
from runtime_core.access import ROLE_ALLOWS, Can
from runtime_core.models import Interrupt

Standing = tuple[frozenset[str], frozenset[str]]

NAMES_MAX = 6
STAND_INS_MAX = 20
DECIDING_ROLES = [role for role, rights in ROLE_ALLOWS.items() if Can.DECIDE in rights]


def named(user: Any) -> Q:
    """The condition on interrupts that their terms name this person, a step of their ladder does, or
    somebody for whom they stand in.
    """
    versions = list(ApprovalPolicy.objects.values_list("id", "roles", "groups", "people"))
    standing = _standing(user)
    condition = _named_self(user.pk, standing, versions)
    held = Delegation.objects.filter(delegation.in_force(), delegate=user)
    projects = [project for found in standing.values() for project in found]
    for one in held.filter(project__in=projects).select_related("delegator")[:STAND_INS_MAX]:
        condition |= _in_place_of(one, versions)
    return condition


def _named_self(user_id: int, standing: dict[Standing, list[uuid.UUID]], versions: list[Any]) -> Q:
    """Project by project."""
    condition = Q(pk__in=[])
    for (roles, groups), projects in standing.items():
        allowed: Q = Q(policy__in=_naming(versions, user_id, roles, groups))
        allowed |= let_in(user_id, roles, groups)
        if roles.intersection(DECIDING_ROLES):
            allowed |= Q(policy=None) | Q(policy__in=_naming_nobody(versions))
        condition |= Q(project__in=projects) & allowed
    return condition


def _in_place_of(one: Delegation, versions: list[Any]) -> Q:
    """What the delegator may decide on, as far as the delegation goes."""
    condition = Q(project=one.project_id, risk__in=delegation.up_to(one.max_risk))
    condition &= _named_self(one.delegator_id, _standing(one.delegator), versions)
    condition &= ~Q(run__created_by_id=one.delegator_id, requester_may=False)
    condition &= ~Q(changed_by_id=one.delegator_id, terms__editor_may=False)
    return condition & Q(tool_call__tool=one.tool) if one.tool else condition


def decides_anywhere(user: Any) -> bool:
    """True if the person has the right to decide in some project, or a policy names them."""
    if user.memberships.filter(role__in=DECIDING_ROLES).exists():
        return True
    return Interrupt.objects.filter(named(user), status="open").exists()


def deciders(interrupt: Interrupt) -> list[str]:
    """Names of people who may decide on it, to tell those who may not whom to ask."""
    names = candidates(interrupt).order_by("username").values_list("username", flat=True)
    return list(names[:NAMES_MAX])


def candidates(interrupt: Interrupt) -> QuerySet[Any]:
    """The people who may decide on it: named by its terms or a step of its ladder, or standing in for
    somebody. In one statement, so a delegation of who may not themselves is not told apart here.
    """
    terms = terms_of(interrupt)
    members = get_user_model().objects.filter(
        is_active=True, memberships__project_id=interrupt.project_id
    )
    named = members.filter(_named_by(terms))
    for step in steps_of(interrupt):
        named |= members.filter(
            Q(memberships__role__in=step.roles)
            | Q(approver_groups__in=step.groups)
            | Q(pk__in=step.people)
        )
    named |= members.filter(pk__in=delegation.delegates(interrupt))
    people = get_user_model().objects.filter(pk__in=named.values("pk"))
    if not terms.requester_may:
        people = people.exclude(pk=interrupt.run.created_by_id)
    if not terms.editor_may and interrupt.changed_by_id:
        people = people.exclude(pk=interrupt.changed_by_id)
    return people


def _named_by(terms: Terms) -> Q:
    # In one filter with the project, so that a role counts only there.
    if terms.is_open_to_all:
        return Q(memberships__role__in=DECIDING_ROLES)
    return (
        Q(memberships__role__in=terms.roles)
        | Q(approver_groups__in=terms.groups)
        | Q(pk__in=terms.people)
    )


def _standing(user: Any) -> dict[Standing, list[uuid.UUID]]:
    """The person's roles and groups, each combination with the projects in which it is theirs."""
    roles: dict[uuid.UUID, set[str]] = defaultdict(set)
    for project_id, role in user.memberships.values_list("project_id", "role"):
        roles[project_id].add(role)
    groups: dict[uuid.UUID, set[str]] = defaultdict(set)
    mine = ApproverGroup.objects.filter(members=user)
    for project_id, group_id in mine.values_list("project_id", "id"):
        groups[project_id].add(str(group_id))
    found: dict[Standing, list[uuid.UUID]] = defaultdict(list)
    for project_id, held in roles.items():
        found[frozenset(held), frozenset(groups[project_id])].append(project_id)
    return found


def _naming(
    versions: list[Any], user_id: int, roles: frozenset[str], groups: frozenset[str]
) -> list[uuid.UUID]:
    return [
        version_id
        for version_id, its_roles, its_groups, people in versions
        if user_id in people or roles.intersection(its_roles) or groups.intersection(its_groups)
    ]


def _naming_nobody(versions: list[Any]) -> list[uuid.UUID]:
    return [version_id for version_id, *whom in versions if not any(whom)]

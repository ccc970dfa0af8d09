"""Which policy applies to a call and who may decide under it, as tables."""

from __future__ import annotations

import itertools
import uuid
from dataclasses import replace
from typing import Any

import pytest

from approvals.policy.rules import (
    HIDDEN,
    MAY,
    NO_MACHINES,
    NOT_NAMED,
    OWN_EDIT,
    OWN_RUN,
    WITHOUT_ROLE,
    Person,
    Policy,
    Ruling,
    may_decide,
    resolve,
)
from approvals.terms import Terms, defaults, demands_more, from_json
from runtime_core.access import ROLE_ALLOWS, Can
from runtime_core.values import Asked, Risk

LOW, MEDIUM, HIGH, CRITICAL = Risk
PROJECT, OTHER_PROJECT = uuid.UUID(int=1), uuid.UUID(int=2)
ASKED = Asked(
    PROJECT,
    "refund-desk",
    "issue_refund",
    HIGH,
    {"order_id": "A-1", "amount": "120.00"},
    {"properties": {"order_id": {}, "amount": {}, "note": {"default": ""}}},
)
_numbers = itertools.count(10)


def policy(name: str, *, required: int = 1, **match: Any) -> Policy:
    """A policy that is younger than all made before."""
    number = next(_numbers)
    return Policy(
        uuid.UUID(int=number), uuid.UUID(int=number), name, 1, Terms(required=required), **match
    )


def person(*roles: str, **more: Any) -> Person:
    rights = frozenset[Can]().union(*(ROLE_ALLOWS[role] for role in roles))
    return Person(7, rights, frozenset(roles), **more)


@pytest.mark.parametrize(
    ("roles", "is_requester", "risk", "expected"),
    [
        ((), False, LOW, HIDDEN),
        ((), True, CRITICAL, HIDDEN),
        (("viewer",), False, LOW, WITHOUT_ROLE),
        (("operator",), False, LOW, WITHOUT_ROLE),
        (("operator",), True, LOW, WITHOUT_ROLE),
        (("approver",), False, LOW, MAY),
        (("approver",), False, CRITICAL, MAY),
        (("approver",), True, LOW, MAY),
        (("approver",), True, MEDIUM, MAY),
        (("approver",), True, HIGH, OWN_RUN),
        (("approver",), True, CRITICAL, OWN_RUN),
        (("operator", "approver"), True, HIGH, OWN_RUN),
        (("admin",), False, CRITICAL, MAY),
        (("admin",), True, HIGH, OWN_RUN),
        (("viewer", "operator"), False, LOW, WITHOUT_ROLE),
    ],
)
def test_without_a_policy_the_ruling_follows_roles_requester_and_risk(
    roles: tuple[str, ...], is_requester: bool, risk: Risk, expected: Ruling
) -> None:
    assert may_decide(person(*roles, is_requester=is_requester), defaults(risk)) == expected


@pytest.mark.parametrize(
    ("somebody", "terms", "expected"),
    [
        (person("viewer"), Terms(people=(7,)), MAY),
        (person("viewer"), Terms(roles=("viewer",)), MAY),
        (person("viewer", groups=frozenset({"g1"})), Terms(groups=("g1", "g2")), MAY),
        (person("approver"), Terms(people=(8,)), NOT_NAMED),
        (person("approver"), Terms(roles=("admin",)), NOT_NAMED),
        (person("approver", groups=frozenset({"g3"})), Terms(groups=("g1",)), NOT_NAMED),
        (person("approver"), Terms(roles=("admin",), people=(7,)), MAY),
        (person(), Terms(people=(7,)), HIDDEN),
        (person("approver", is_editor=True), Terms(editor_may=False), OWN_EDIT),
        (person("approver", is_editor=True), Terms(), MAY),
        (person("approver", is_requester=True), Terms(requester_may=False, people=(7,)), OWN_RUN),
        (person("approver", is_machine=True), defaults(LOW), MAY),
        (person("approver", is_machine=True), defaults(MEDIUM), MAY),
        (person("approver", is_machine=True), defaults(HIGH), NO_MACHINES),
        (person("approver", is_machine=True), defaults(CRITICAL), NO_MACHINES),
        (person("approver", is_machine=True), replace(defaults(HIGH), machines_may=True), MAY),
        (person("viewer", is_machine=True), defaults(LOW), WITHOUT_ROLE),
    ],
)
def test_under_a_policy_the_ruling_follows_its_terms(
    somebody: Person, terms: Terms, expected: Ruling
) -> None:
    assert may_decide(somebody, terms) == expected


def test_the_right_to_decide_without_the_right_to_see_is_worth_nothing() -> None:
    assert may_decide(Person(7, frozenset({Can.DECIDE})), Terms(people=(7,))) == HIDDEN


def test_every_no_that_may_be_told_says_the_way_out() -> None:
    told = (WITHOUT_ROLE, NOT_NAMED, OWN_RUN, OWN_EDIT, NO_MACHINES)
    assert all("Ask" in ruling.reason for ruling in told)


def test_the_defaults_are_those_that_are_promised() -> None:
    promised = [
        (terms.required, terms.requester_may, terms.undo_seconds, terms.expires_minutes)
        for terms in map(defaults, Risk)
    ]

    assert promised == [(1, True, 5, 1440), (1, True, 5, 1440), (1, False, 10, 1440),
                        (2, False, 0, 1440)]  # fmt: skip
    assert all(terms.on_expiry == "reject" for terms in map(defaults, Risk))
    assert all(terms.is_open_to_all for terms in map(defaults, Risk))


@pytest.mark.parametrize(
    ("weaker", "stronger"),
    [
        ({}, {"project": PROJECT}),
        ({"project": PROJECT}, {"risk": "high"}),
        ({"project": PROJECT, "risk": "high"}, {"agent": "refund-*"}),
        ({"agent": "refund-*", "risk": "high"}, {"agent": "refund-desk"}),
        ({"agent": "refund-desk", "project": PROJECT}, {"conditions": {"amount": {"min": 100}}}),
        ({"conditions": {"amount": {"min": 100}}, "agent": "refund-desk"}, {"tool": "issue_*"}),
        ({"tool": "*_refund", "conditions": {"amount": {"min": 1}}}, {"tool": "issue_refun*"}),
        ({"tool": "issue_refun*", "agent": "refund-desk"}, {"tool": "issue_refund"}),
        ({"tool": "issue_refund", "agent": "refund-desk"},
         {"tool": "issue_refund", "conditions": {"amount": {"min": 100}}}),
    ],
)  # fmt: skip
def test_the_most_specific_policy_applies_in_whatever_order_they_come(
    weaker: dict[str, Any], stronger: dict[str, Any]
) -> None:
    weak, strong = policy("weak", required=9, **weaker), policy("strong", **stronger)

    for order in ([weak, strong], [strong, weak]):
        found = resolve(order, ASKED)
        assert found.policy is strong
        why = {one.policy.name: one.why_not for one in found.considered}
        assert why == {"weak": "It matches, but “strong” is more specific.", "strong": ""}


def test_between_equals_more_people_count_and_then_age() -> None:
    older, stricter, younger = (
        policy(name, required=n) for name, n in (("a", 1), ("b", 2), ("c", 2))
    )

    for order in itertools.permutations([older, stricter, younger]):
        assert resolve(order, ASKED).policy is stricter


@pytest.mark.parametrize(
    ("match", "why"),
    [
        ({"project": OTHER_PROJECT}, "another project"),
        ({"tool": "lookup_order"}, "for the tool lookup_order, not issue_refund"),
        ({"tool": "Issue_refund"}, "for the tool Issue_refund"),
        ({"agent": "code-*"}, "for the agent code-*, not refund-desk"),
        ({"risk": "critical"}, "for critical risk; this is high"),
        ({"conditions": {"amount": {"max": 100}}}, "does not hold: amount is not within max 100"),
        ({"conditions": {"missing": {"max": 1}}}, "missing is not given"),
        ({"conditions": {"note": {"equals": "x"}}}, "note is not within equals"),
    ],
)
def test_what_does_not_match_says_why_and_the_defaults_hold(
    match: dict[str, Any], why: str
) -> None:
    found = resolve([policy("other", required=5, **match)], ASKED)

    assert (found.policy, found.terms) == (None, defaults(HIGH))
    assert why in found.considered[0].why_not


def test_a_condition_that_cannot_be_judged_never_lets_fewer_people_decide() -> None:
    broken = {"order_id": {"min": 5}}  # a text is no number
    sound = policy("sound", required=2)

    assert resolve([sound, policy("lax", conditions=broken)], ASKED).policy is sound
    strict = policy("strict", required=3, conditions=broken)
    assert resolve([sound, strict], ASKED).policy is strict
    assert resolve([strict], ASKED).policy is strict


@pytest.mark.parametrize(
    ("new", "is_more"),
    [
        (Terms(), False),
        (Terms(required=2), True),
        (Terms(requester_may=False), True),
        (Terms(editor_may=False), True),
        (Terms(machines_may=False), True),
        (Terms(roles=("admin",)), True),
        (Terms(undo_seconds=0, expires_minutes=1, on_expiry="escalate", remember_may=False), False),
    ],
)
def test_terms_that_refuse_what_others_took_demand_more(new: Terms, is_more: bool) -> None:
    assert demands_more(new, Terms()) is is_more
    assert demands_more(Terms(roles=("admin",)), Terms(roles=("admin", "viewer")))
    assert not demands_more(Terms(roles=("admin", "viewer")), Terms(roles=("admin",)))


def test_terms_come_back_from_a_row_as_they_were_and_an_older_row_gets_the_defaults() -> None:
    step = {"after_minutes": 5, "action": "notify", "roles": ["admin"]}
    terms = Terms(3, ("admin",), ("g",), (1, 2), False, False, False, 9, "escalate", (step,), 0)

    assert from_json(terms.as_json(), LOW) == terms
    assert from_json({}, CRITICAL) == defaults(CRITICAL)

"""Who may decide on what, as a table."""

from __future__ import annotations

import pytest

from approvals.policy import HIDDEN, MAY, OWN_RUN, WITHOUT_ROLE, Facts, Ruling, may_decide
from runtime_core.access import ROLE_ALLOWS, Can
from runtime_core.values import Risk

LOW, MEDIUM, HIGH, CRITICAL = Risk


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
def test_the_ruling_follows_roles_requester_and_risk(
    roles: tuple[str, ...], is_requester: bool, risk: Risk, expected: Ruling
) -> None:
    rights = frozenset[Can]().union(*(ROLE_ALLOWS[role] for role in roles))

    assert may_decide(Facts(rights, is_requester, risk)) == expected


def test_the_right_to_decide_without_the_right_to_see_is_worth_nothing() -> None:
    assert may_decide(Facts(frozenset({Can.DECIDE}), False, LOW)) == HIDDEN


def test_every_no_that_may_be_told_says_the_way_out() -> None:
    assert all("Ask" in ruling.reason for ruling in (WITHOUT_ROLE, OWN_RUN))

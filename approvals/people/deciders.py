"""Who may decide on a request, as people: for those who must be told, asked or named."""

from __future__ import annotations

from typing import Any

from approvals.people.eligible import candidates
from approvals.people.rulings import ruling_on
from runtime_core.models import Interrupt

PEOPLE_MAX = 200


def who_may_decide(interrupt: Interrupt) -> list[Any]:
    """Those who may decide on `interrupt` right now; asked one by one, so not for pages."""
    found = candidates(interrupt).order_by("username")[:PEOPLE_MAX]
    return [person for person in found if ruling_on(interrupt, person.pk).may]

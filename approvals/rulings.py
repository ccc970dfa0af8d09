"""Reads from the rows what the policy needs to know, and asks it. Called inside the transaction
that acts on it.
"""

from __future__ import annotations

import uuid

from django.contrib.auth import get_user_model

from approvals.policy import HIDDEN, Facts, Ruling, may_decide
from runtime_core.access import allowed
from runtime_core.models import Interrupt
from runtime_core.values import Risk


def ruling_on(
    interrupt: Interrupt, user_id: int | None, token_project: uuid.UUID | None = None
) -> Ruling:
    """May this person decide on `interrupt` right now? Account, memberships and run are read
    afresh.
    """
    if token_project and token_project != interrupt.project_id:
        return HIDDEN
    people = get_user_model().objects.filter(is_active=True)
    user = people.filter(pk=user_id).first() if user_id is not None else None
    if user is None:
        return HIDDEN
    return may_decide(
        Facts(
            rights=allowed(user, interrupt.project_id),
            is_requester=interrupt.run.created_by_id == user.pk,
            risk=Risk(interrupt.risk),
        )
    )

"""The ladder of a request that nobody decides: its policy's steps, each taken once when its time has
come by the database's clock.

`notify` tells people, `widen` also lets them decide, `raise` gives the request to them as well: to the
project's admins where it names nobody.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from django.contrib.auth import get_user_model
from django.db import connection
from django.db.models import Q
from django.db.models.functions import Now

from approvals.models import ApproverGroup, Assignment, EscalationStep
from approvals.people.widening import NOTIFY, RAISE, WIDEN
from approvals.policy.steps import STEPS_MAX
from approvals.policy.stored import terms_of
from approvals.teamwork.items import keep, opened
from approvals.terms import ESCALATE
from runtime_core.decisions import Locked
from runtime_core.errors import AlreadyDecided, NotFound
from runtime_core.models import Interrupt, Role
from runtime_core.values import SYSTEM, Json

BATCH = 100
# Comes after every step that a policy can have.
LAST_STEP = STEPS_MAX
NAMED = ("roles", "groups", "people")
_SAID = {
    NOTIFY: "reminded {whom}, because nobody has decided yet",
    WIDEN: "let {whom} decide as well, because nobody has decided yet",
    RAISE: "gave the request to {whom}, because nobody has decided yet",
}

_DUE = """
SELECT i.id, (ladder.nth - 1)::int
FROM interrupt i, jsonb_array_elements(
    CASE jsonb_typeof(i.terms->'escalation') WHEN 'array' THEN i.terms->'escalation' ELSE '[]' END
) WITH ORDINALITY AS ladder(step, nth)
WHERE i.status = 'open'
  AND i.created_at + make_interval(mins => (ladder.step->>'after_minutes')::int) <= clock_timestamp()
  AND NOT EXISTS (
      SELECT 1 FROM interrupt_escalation taken
      WHERE taken.interrupt_id = i.id AND taken.step = ladder.nth - 1)
ORDER BY i.created_at, i.id, ladder.nth
LIMIT %s
"""


@dataclass(frozen=True, slots=True)
class Whom:
    """Whom a step names, as ids where they have them, and in words."""

    roles: tuple[str, ...]
    groups: tuple[uuid.UUID, ...]
    people: tuple[int, ...]
    words: str


def escalate_due() -> int:
    """Take every step that is due, each in a transaction of its own; how many were taken."""
    with connection.cursor() as cursor:
        cursor.execute(_DUE, [BATCH])
        due = cursor.fetchall()
    return sum(_take(interrupt_id, step) for interrupt_id, step in due)


class Overdue:
    """What `runtime_core.ports` binds: asked when nobody decided in time."""

    def prolong(self, locked: Locked) -> bool:
        """Where the policy says so, give the request to the project's admins and as much time again,
        once. False: it is to be rejected.
        """
        terms = terms_of(locked.interrupt)
        if terms.on_expiry != ESCALATE or not _climb(locked, LAST_STEP, {"action": RAISE}):
            return False
        interrupt = locked.interrupt
        interrupt.expires_at = Now() + dt.timedelta(minutes=terms.expires_minutes)
        interrupt.save(update_fields=["expires_at"])
        return True


def overdue() -> Overdue:
    """What is asked in this process."""
    return Overdue()


def _take(interrupt_id: uuid.UUID, number: int) -> bool:
    try:
        with opened(SYSTEM, interrupt_id) as locked:
            return _take_locked(locked, number)
    except (AlreadyDecided, NotFound):
        return False


def _take_locked(locked: Locked, number: int) -> bool:
    ladder = terms_of(locked.interrupt).escalation
    return number < len(ladder) and _climb(locked, number, ladder[number])


def _climb(locked: Locked, number: int, step: Mapping[str, Json]) -> bool:
    interrupt = locked.interrupt
    whom = _whom(interrupt, step)
    action = str(step.get("action", NOTIFY))
    _, is_first = EscalationStep.objects.get_or_create(
        interrupt=interrupt,
        step=number,
        defaults={
            "action": action,
            "roles": list(whom.roles),
            "groups": [str(group) for group in whom.groups],
            "people": list(whom.people),
        },
    )
    if not is_first:
        return False
    if action == RAISE:
        _give(interrupt, whom)
    keep(
        locked,
        SYSTEM,
        "interrupt.escalated",
        _SAID[action].format(whom=whom.words),
        step=number + 1,
        how=action,
        audience=_audience(interrupt, whom),
    )
    return True


def _whom(interrupt: Interrupt, step: Mapping[str, Json]) -> Whom:
    if step.get("action") == RAISE and not any(step.get(key) for key in NAMED):
        step = {**step, "roles": [Role.ADMIN.value]}
    names = {key: [str(one) for one in step.get(key) or []] for key in NAMED}
    groups = ApproverGroup.objects.filter(project=interrupt.project_id, name__in=names["groups"])
    people = get_user_model().objects.filter(
        username__in=names["people"], memberships__project=interrupt.project_id
    )
    said = [f"every {role}" for role in names["roles"]] + names["groups"] + names["people"]
    return Whom(
        roles=tuple(names["roles"]),
        groups=tuple(groups.values_list("id", flat=True)),
        people=tuple(people.distinct().values_list("id", flat=True)),
        words=", ".join(said) or "everybody who may decide",
    )


def _audience(interrupt: Interrupt, whom: Whom) -> list[int]:
    """Ids of all that the step names; none stands for everybody who may decide."""
    roles = Q(memberships__project=interrupt.project_id, memberships__role__in=whom.roles)
    found = get_user_model().objects.filter(
        roles | Q(approver_groups__in=whom.groups) | Q(pk__in=whom.people), is_active=True
    )
    return sorted(set(found.values_list("id", flat=True)))


def _give(interrupt: Interrupt, whom: Whom) -> None:
    """The request leaves whoever had it for those that the step names."""
    rows = [Assignment(interrupt=interrupt, group_id=group) for group in whom.groups]
    people = whom.people or (() if whom.groups else _audience(interrupt, whom))
    rows += [Assignment(interrupt=interrupt, person_id=person) for person in people]
    Assignment.objects.filter(interrupt=interrupt).delete()
    Assignment.objects.bulk_create(rows)

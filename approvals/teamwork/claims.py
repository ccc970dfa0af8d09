"""Who looks after a request: claims that end by themselves, and assignments. Neither keeps anybody
from deciding.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Q
from django.db.models.functions import Now

from approvals.models import ApproverGroup, Assignment, InterruptClaim, Snooze
from approvals.people.rulings import ruling_on
from approvals.teamwork.items import keep, opened, person_id
from runtime_core import clock
from runtime_core.access import Can, allowed, require_person
from runtime_core.decisions import Locked
from runtime_core.errors import AlreadyClaimed, InvalidInput, NotAllowed
from runtime_core.models import Interrupt
from runtime_core.values import Actor

CLAIM_MINUTES = 15
ASSIGNED_MAX = 20
SNOOZE_MINUTES_MAX = 30 * 24 * 60


def claim(
    actor: Actor, interrupt_id: uuid.UUID, *, token_project: uuid.UUID | None = None
) -> InterruptClaim:
    """Say that `actor` looks after the request for a while; again, for longer. AlreadyClaimed if
    somebody else does.
    """
    with opened(actor, interrupt_id, token_project) as locked:
        _require_decider(actor, locked, token_project)
        free = InterruptClaim.objects.filter(interrupt=locked.interrupt).filter(
            Q(until__lte=Now()) | Q(holder=actor.user_id)
        )
        until = Now() + dt.timedelta(minutes=CLAIM_MINUTES)
        is_kept = free.filter(holder=actor.user_id, until__gt=Now()).update(until=until)
        if not is_kept and not free.update(holder=actor.user_id, since=Now(), until=until):
            _take(actor, locked, until)
        if not is_kept:
            keep(locked, actor, "interrupt.claimed", "looks after the request")
    return InterruptClaim.objects.select_related("holder").get(interrupt_id=interrupt_id)


def release(
    actor: Actor, interrupt_id: uuid.UUID, *, token_project: uuid.UUID | None = None
) -> None:
    """End a claim: one's own, or as who manages the project anybody's. None there: nothing happens."""
    with opened(actor, interrupt_id, token_project) as locked:
        held = InterruptClaim.objects.filter(interrupt=locked.interrupt, until__gt=Now())
        found = held.select_related("holder").first()
        if found is None:
            return
        if found.holder_id != actor.user_id and not _manages(actor, locked):
            raise NotAllowed(f"{found.holder.get_username()} looks after it, not you.")
        found.delete()
        whose = "" if found.holder_id == actor.user_id else f" of {found.holder.get_username()}"
        keep(locked, actor, "interrupt.released", f"ended the claim{whose}")


def assign(
    actor: Actor,
    interrupt_id: uuid.UUID,
    people: Sequence[str],
    groups: Sequence[str] = (),
    *,
    token_project: uuid.UUID | None = None,
) -> list[Assignment]:
    """Give the request to exactly these people (user names) and groups (names); to nobody, if none.

    Who may decide on it may, and who manages the project. InvalidInput names who cannot decide.
    """
    require_person(actor, "give a request to people")
    with opened(actor, interrupt_id, token_project) as locked:
        if not _manages(actor, locked):
            _require_decider(actor, locked, token_project)
        chosen, teams = _people(locked, people), _groups(locked, groups)
        before = _targets(locked.interrupt)
        Assignment.objects.filter(interrupt=locked.interrupt).delete()
        rows = [Assignment(person=one) for one in chosen] + [Assignment(group=g) for g in teams]
        for row in rows:
            row.interrupt, row.created_by_id = locked.interrupt, actor.user_id
        Assignment.objects.bulk_create(rows)
        if _targets(locked.interrupt) != before:
            _tell(locked, actor, chosen, teams)
    return rows


def snooze(
    actor: Actor,
    interrupt_id: uuid.UUID,
    minutes: int,
    *,
    token_project: uuid.UUID | None = None,
) -> Snooze | None:
    """Put the request out of `actor`'s own sight for so long; 0 brings it back. Nobody else notices."""
    require_person(actor, "put a request off")
    if not 0 <= minutes <= SNOOZE_MINUTES_MAX:
        raise InvalidInput(f"minutes: must be from 0 to {SNOOZE_MINUTES_MAX}.", field="minutes")
    with opened(actor, interrupt_id, token_project) as locked:
        mine = Snooze.objects.filter(interrupt=locked.interrupt, user=actor.user_id)
        if minutes == 0:
            mine.delete()
            return None
        made, _ = Snooze.objects.update_or_create(
            interrupt=locked.interrupt,
            user_id=person_id(actor),
            defaults={"until": clock.now() + dt.timedelta(minutes=minutes)},
        )
    return made


def _take(actor: Actor, locked: Locked, until: Any) -> None:
    held = InterruptClaim.objects.select_related("holder").filter(interrupt=locked.interrupt)
    if (found := held.first()) is not None:
        raise AlreadyClaimed(
            f"{found.holder.get_username()} looks after it already; you may decide all the same.",
            holder=found.holder.get_username(),
        )
    InterruptClaim.objects.create(
        interrupt=locked.interrupt, holder_id=person_id(actor), until=until
    )


def _require_decider(actor: Actor, locked: Locked, token_project: uuid.UUID | None) -> None:
    ruling = ruling_on(locked.interrupt, actor.user_id, token_project, is_machine=actor.is_machine)
    if not ruling.may:
        raise NotAllowed(ruling.reason)


def _manages(actor: Actor, locked: Locked) -> bool:
    user = get_user_model().objects.filter(pk=person_id(actor)).first()
    return (
        not actor.is_machine
        and user is not None
        and Can.MANAGE in allowed(user, locked.interrupt.project_id)
    )


def _people(locked: Locked, names: Sequence[str]) -> list[Any]:
    if len(names) > ASSIGNED_MAX:
        raise InvalidInput(f"people: at most {ASSIGNED_MAX}.", field="people")
    found = {
        one.get_username(): one
        for one in get_user_model().objects.filter(username__in=names, is_active=True)
    }
    for name in names:
        # Who is unknown and who may not decide are told apart for nobody.
        if name not in found or not ruling_on(locked.interrupt, found[name].pk).may:
            raise InvalidInput(f"people: {name} may not decide on this request.", field="people")
    return list(found.values())


def _groups(locked: Locked, names: Sequence[str]) -> list[ApproverGroup]:
    if len(names) > ASSIGNED_MAX:
        raise InvalidInput(f"groups: at most {ASSIGNED_MAX}.", field="groups")
    project = locked.interrupt.project_id
    found = {one.name: one for one in ApproverGroup.objects.filter(project=project, name__in=names)}
    for name in names:
        if name not in found:
            raise InvalidInput(f"groups: there is no group {name} here.", field="groups")
    return list(found.values())


def _targets(interrupt: Interrupt) -> set[tuple[Any, Any]]:
    return set(Assignment.objects.filter(interrupt=interrupt).values_list("person", "group"))


def _tell(
    locked: Locked, actor: Actor, people: Sequence[Any], groups: Sequence[ApproverGroup]
) -> None:
    names = [one.get_username() for one in people] + [one.name for one in groups]
    if not names:
        keep(locked, actor, "interrupt.unassigned", "gave the request back to everybody")
        return
    audience = {one.pk for one in people} | set(
        get_user_model().objects.filter(approver_groups__in=groups).values_list("pk", flat=True)
    )
    text = f"gave the request to {', '.join(names)}"
    keep(locked, actor, "interrupt.assigned", text, to=names, audience=sorted(audience))

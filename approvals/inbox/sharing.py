"""How a request's page shows the shared work on it: who looks after it, whose it is, its history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models.functions import Now

from approvals import grants
from approvals.models import (
    ApproverGroup,
    Assignment,
    Decision,
    HistoryEntry,
    InterruptClaim,
    Snooze,
)
from approvals.people.eligible import candidates
from runtime_core.models import Interrupt
from runtime_core.states import InterruptStatus

ASSIGNABLE_MAX = 50
SNOOZES = ((60, "1 hour"), (240, "4 hours"), (1_440, "1 day"), (10_080, "1 week"))


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a request's history."""

    at: Any
    who: str
    text: str


def context(user: Any, interrupt: Interrupt) -> dict[str, Any]:
    """What the page's parts about sharing need; the choices only while it is open."""
    claim = InterruptClaim.objects.filter(interrupt=interrupt, until__gt=Now())
    given = Assignment.objects.filter(interrupt=interrupt).select_related("person", "group")
    is_open = interrupt.status == InterruptStatus.OPEN
    snoozed = Snooze.objects.filter(interrupt=interrupt, user_id=user.pk, until__gt=Now())
    return {
        "claim": claim.select_related("holder").first() if is_open else None,
        "assignments": list(given),
        "assignable": _names(interrupt) if is_open else [],
        "groups": list(ApproverGroup.objects.filter(project=interrupt.project_id))
        if is_open
        else [],
        "snoozed": snoozed.first() if is_open else None,
        "snooze_choices": SNOOZES,
        "history": history(interrupt),
        "may_remember": is_open and grants.may_be_remembered(interrupt),
    }


def _names(interrupt: Interrupt) -> list[str]:
    names = candidates(interrupt).order_by("username").values_list("username", flat=True)
    return list(names[:ASSIGNABLE_MAX])


def history(interrupt: Interrupt) -> list[Line]:
    """All that happened to the request, oldest first: opened, shared, decided, ended."""
    lines = [Line(interrupt.created_at, interrupt.run.agent.name, "asked")]
    lines += [
        Line(one.created_at, one.actor_name, one.text)
        for one in HistoryEntry.objects.filter(interrupt=interrupt)
    ]
    decisions = Decision.objects.filter(interrupt=interrupt).select_related("seat")
    lines += [Line(one.created_at, one.actor_name, _decision(one)) for one in decisions]
    if interrupt.status in (InterruptStatus.EXPIRED, InterruptStatus.WITHDRAWN):
        lines.append(Line(interrupt.decided_at, "system", f"made it {interrupt.status}"))
    return sorted(lines, key=lambda line: line.at)


def _decision(one: Decision) -> str:
    words = {
        "approve": "approved",
        "edit": "changed and approved",
        "respond": "answered",
        "reject": "rejected",
        "propose": "proposed other arguments for",
        "undo": "took back what was decided on",
    }
    said = f"{words.get(one.action, one.action)} version {one.version}"
    if one.seat and one.seat_id != one.actor_id:
        said += f" for {one.seat.get_username()}"
    if one.via == "machine":
        said += " via a service token"
    return f"{said}, past the approval policy" if one.overridden else said

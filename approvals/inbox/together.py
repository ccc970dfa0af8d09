"""Reviewing several requests together: each is shown whole and decided by itself, on its own version."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from approvals import queries
from approvals.deciding import commands
from approvals.deciding.opinion import Opinion
from approvals.queries import Shown
from runtime_core.errors import DecisionConflict, InvalidPayload, NotAllowed, NotFound, RequestError
from runtime_core.models import Interrupt
from runtime_core.states import InterruptKind, InterruptStatus
from runtime_core.values import Actor, Risk

MOST = 20
ACTIONS = ("approve", "reject")
# Higher risk is looked at alone: reading twenty of those is reading none.
HIGHEST = Risk.MEDIUM


@dataclass(frozen=True, slots=True)
class Item:
    """One request as the sheet showed it."""

    id: uuid.UUID
    version: int
    digest: str


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one of them: its row as it is now, None if the person may not see it."""

    item: Item
    interrupt: Interrupt | None
    refusal: RequestError | None = None


def gather(user: Any, ids: Sequence[uuid.UUID]) -> list[Shown]:
    """The requests, each as this person may see it, in the order asked for.

    NotFound if one is not there for them; InvalidPayload if they are not to be reviewed together.
    """
    _check_number(len(ids))
    rows = {row.id: row for row in queries.visible(user).filter(id__in=ids)}
    if len(rows) < len(set(ids)):
        raise NotFound("One of these requests is not there, or you may not see it.")
    chosen = [rows[one] for one in dict.fromkeys(ids)]
    check_fit(chosen)
    return [queries.shown_to(user, row) for row in chosen]


def check_fit(chosen: Sequence[Interrupt]) -> None:
    """Pass if these may be reviewed together, open or not; else InvalidPayload, which says why not."""
    if any(Risk(one.risk).level > HIGHEST.level for one in chosen):
        raise InvalidPayload(
            "Requests of high and critical risk are decided one by one. Leave them out.", field="id"
        )
    if any(one.kind != InterruptKind.TOOL_APPROVAL for one in chosen):
        raise InvalidPayload(
            "Only approvals of calls are reviewed together; questions and doubts are answered one "
            "by one.",
            field="id",
        )
    if len({one.tool_call.tool for one in chosen}) > 1:
        raise InvalidPayload(
            "Only requests for the same tool are reviewed together. Choose those of one tool.",
            field="id",
        )


def decide(
    actor: Actor, user: Any, items: Sequence[Item], action: str, reason: str
) -> list[Result]:
    """Decide on each by itself; one that is refused keeps none of the others back.

    InvalidPayload if they do not belong together or the form is not whole; then none was decided on.
    """
    _check_number(len(items))
    if action not in ACTIONS:
        raise InvalidPayload("Choose to approve or to reject.", field="action")
    if action == "reject" and not reason:
        raise InvalidPayload("Say why. The agents read this.", field="reason")
    if len(reason) > commands.REASON_MAX:
        raise InvalidPayload(f"At most {commands.REASON_MAX} characters.", field="reason")
    seen = queries.visible(user).filter(id__in=[one.id for one in items])
    check_fit(list(seen))
    return list(_decided(actor, user, items, action, reason))


def _decided(
    actor: Actor, user: Any, items: Sequence[Item], action: str, reason: str
) -> Iterator[Result]:
    for item in items:
        refusal = None
        opinion = Opinion(action=action, version=item.version, digest=item.digest, reason=reason)
        try:
            commands.decide(actor, item.id, opinion, undoable=True)
        except (DecisionConflict, NotAllowed, NotFound, InvalidPayload) as error:
            refusal = error
        now = queries.visible(user).filter(id=item.id).first()
        yield Result(item, now, refusal)


def can_join(interrupt: Interrupt) -> bool:
    """True if the list offers to select it."""
    return (
        interrupt.status == InterruptStatus.OPEN
        and interrupt.kind == InterruptKind.TOOL_APPROVAL
        and Risk(interrupt.risk).level <= HIGHEST.level
    )


def _check_number(number: int) -> None:
    if number == 0:
        raise InvalidPayload("Select the requests to review first.", field="id")
    if number > MOST:
        raise InvalidPayload(
            f"At most {MOST} requests are reviewed together; {number} were selected.", field="id"
        )

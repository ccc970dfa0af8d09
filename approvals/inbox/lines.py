"""The lines of the inbox's list: what each says at a glance, for all of them by a fixed number of
statements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import F
from django.db.models.functions import Now

from approvals import queries
from approvals.inbox import showing, together
from approvals.models import VOTES, Decision, InterruptClaim
from runtime_core import clock
from runtime_core.models import Interrupt
from runtime_core.states import InterruptStatus
from runtime_core.templatetags.status_words import look_of


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the list. `summary` is whole, save values that are named with their size."""

    interrupt: Interrupt
    summary: str
    votes: int = 0
    holder: str = ""
    is_gone: bool = False
    can_undo: bool = False

    @property
    def is_open(self) -> bool:
        return self.interrupt.status == InterruptStatus.OPEN

    @property
    def can_join(self) -> bool:
        """True if it can be selected to be reviewed with others."""
        return not self.is_gone and together.can_join(self.interrupt)


def rows_of(interrupts: Sequence[Interrupt]) -> list[Row]:
    """A line for each, in their order."""
    ids = [one.id for one in interrupts if one.status == InterruptStatus.OPEN]
    votes, holders = _votes(ids), _holders(ids)
    return [
        Row(
            one,
            showing.summary_of(queries.listed(one).args),
            votes=votes.get(one.id, 0),
            holder=holders.get(one.id, ""),
        )
        for one in interrupts
    ]


def row_now(user: Any, interrupt: Interrupt) -> Row:
    """One line as it is by now: a receipt, if the request does not wait for `user` any more."""
    [row] = rows_of([interrupt])
    if row.is_open and queries.for_me(user).filter(id=interrupt.id).exists():
        return row
    return Row(
        interrupt, row.summary, row.votes, row.holder, is_gone=True, can_undo=_undoable(user, row)
    )


def outcome(interrupt: Interrupt, waiting: int) -> str:
    """What a decision came to, and how much is left to do, in one sentence each for a screen reader."""
    words = look_of(interrupt.status, "interrupt").words
    left = (
        f"{waiting} more wait for you"
        if waiting > 1
        else f"{waiting or 'Nothing'} more waits for you"
    )
    return f"{words}: {interrupt.tool_call.tool}. {left}."


def _undoable(user: Any, row: Row) -> bool:
    """True if a decision of `user` on the version that stands can be taken back."""
    until = row.interrupt.undo_until
    if not row.is_open and (until is None or until <= clock.now()):
        return False
    return any(vote.actor_id == user.pk for vote in queries.votes_of(row.interrupt))


def _votes(ids: Sequence[Any]) -> Counter[Any]:
    counted = Decision.objects.filter(
        interrupt__in=ids, action__in=VOTES, version=F("interrupt__version")
    )
    return Counter(counted.values_list("interrupt_id", flat=True)) if ids else Counter()


def _holders(ids: Sequence[Any]) -> dict[Any, str]:
    held = InterruptClaim.objects.filter(interrupt__in=ids, until__gt=Now())
    return dict(held.values_list("interrupt_id", "holder__username")) if ids else {}

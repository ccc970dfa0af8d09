"""Whose seat a vote fills: the voter's own, or that of somebody for whom they stand in. Each seat counts
once, whoever sits on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from django.contrib.auth import get_user_model

from approvals.models import Decision
from approvals.people.rulings import ruling_on
from approvals.policy.rules import Ruling
from runtime_core.errors import AlreadyDecided
from runtime_core.models import Interrupt
from runtime_core.values import Actor


def free(interrupt: Interrupt, actor: Actor, votes: Sequence[Decision]) -> int | None:
    """The seat that the actor's vote fills now; AlreadyDecided if there is none left for them."""
    if any(vote.actor_id == actor.user_id for vote in votes):
        raise AlreadyDecided("You have decided on this version already; others have yet to.")
    taken = {vote.seat_id: vote.actor_name for vote in votes}
    ruling = ruling_on(interrupt, actor.user_id, is_machine=actor.is_machine)
    for seat in ruling.stands_in_for or (actor.user_id,):
        if seat not in taken:
            return seat
    if actor.user_id in taken:
        who = taken[actor.user_id]
        raise AlreadyDecided(f"{who}, who stands in for you, has decided on this version already.")
    raise AlreadyDecided("Those for whom you stand in have decided on this version already.")


def acting(actor: Actor, seat: int | None) -> Actor:
    """The actor as events name them: with the one in whose place they sit."""
    if seat is None or seat == actor.user_id:
        return actor
    other = get_user_model().objects.get(pk=seat)
    return replace(actor, name=f"{actor.name} for {other.get_username()}")


def still_holds(vote: Decision, ruling: Ruling) -> bool:
    """True if who voted may still do so, in the place in which they did."""
    return ruling.may and (not ruling.stands_in_for or vote.seat_id in ruling.stands_in_for)

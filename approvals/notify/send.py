"""Sends deliveries: each attempt is claimed in the database first, so nobody else makes it too.

At least once: an attempt whose outcome nobody wrote down is made again, with the same event id.
"""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Sequence

import structlog
from django.db.models import F, Q
from django.db.models.functions import Now

from approvals.notify import mail, webhook
from approvals.notify.errors import Undeliverable
from approvals.notify.fanout import RELATED
from approvals.notify.models import Channel, Delivery, NoticeKind, Status
from runtime_core import clock, ports
from runtime_core.access import Can, allowed
from runtime_core.errors import InterlockError
from runtime_core.states import InterruptStatus
from runtime_core.transactions import one_commit
from runtime_core.values import SYSTEM, Audit

log = structlog.get_logger(__name__)

# Longer than an attempt can take.
CLAIM_S = 120
# One tick sends no longer than this: the thread is needed for other ticks too.
TICK_S = 10.0
# How long after each failed attempt the next one is made; after the last it is given up.
BACKOFF_S = (10, 60, 300, 1_800, 7_200, 21_600)
MAX_ATTEMPTS = len(BACKOFF_S) + 1
# A digest names no more than this; the rest is counted.
DIGEST_MAX = 200

_one_at_a_time = threading.Lock()
_ASKING = (NoticeKind.OPENED, NoticeKind.ASSIGNED, NoticeKind.ESCALATED)


def send_due() -> int:
    """Send what is due until nothing is, or the tick's time is over; how many attempts were made."""
    if not _one_at_a_time.acquire(blocking=False):
        return 0
    try:
        return _send_until(clock.monotonic() + TICK_S)
    finally:
        _one_at_a_time.release()


def send_again(delivery: Delivery) -> bool:
    """Give a delivery that was given up new attempts, with the same event id; False if it was not."""
    dead = Delivery.objects.filter(pk=delivery.pk, status=Status.DEAD)
    return bool(dead.update(status=Status.PENDING, attempts=0, due_at=Now(), last_error=""))


def _send_until(until: float) -> int:
    made = 0
    while clock.monotonic() < until:
        claimed = claim()
        if not claimed:
            return made
        attempt(claimed)
        made += 1
    return made


@one_commit("claim_delivery")
def claim() -> list[Delivery]:
    """Take the delivery that is due longest, or with it all of the same person's digest."""
    due = Delivery.objects.select_for_update(skip_locked=True, of=("self",)).filter(
        Q(status=Status.PENDING, due_at__lte=Now())
        | Q(status=Status.SENDING, claimed_until__lte=Now())
    )
    first = due.order_by("due_at", "id").first()
    if first is None:
        return []
    found = [first]
    if first.is_digest:
        others = due.filter(is_digest=True, person=first.person_id).exclude(pk=first.pk)
        found += others.order_by("due_at", "id")[: DIGEST_MAX - 1]
    ids = [one.pk for one in found]
    Delivery.objects.filter(pk__in=ids).update(
        status=Status.SENDING,
        attempts=F("attempts") + 1,
        claimed_until=Now() + dt.timedelta(seconds=CLAIM_S),
    )
    related = [f"notice__{name}" for name in RELATED]
    return list(
        Delivery.objects.filter(pk__in=ids)
        .select_related("endpoint__owner", "person", *related)
        .order_by("due_at", "id")
    )


def attempt(claimed: Sequence[Delivery]) -> None:
    """Make one attempt, outside of any transaction, and write down what came of it."""
    needed = [one for one in claimed if _is_needed(one)]
    _finish([one for one in claimed if one not in needed], status=Status.DROPPED)
    if not needed:
        return
    try:
        _send(needed)
    except (OSError, InterlockError, Undeliverable) as error:
        _failed(needed, _why(error))
    else:
        _finish(needed, status=Status.SENT, sent_at=Now(), last_error="")


def _is_needed(delivery: Delivery) -> bool:
    """A person need not be asked to decide what is decided, and is told of nothing that they may not
    see by now; systems are told of everything.
    """
    person = delivery.endpoint.owner if delivery.endpoint else delivery.person
    project_id = delivery.notice.interrupt.project_id
    if person is not None and Can.VIEW not in allowed(person, project_id):
        return False
    if delivery.person_id is None or delivery.notice.kind not in _ASKING:
        return delivery.endpoint is None or delivery.endpoint.is_active
    return delivery.notice.interrupt.status == InterruptStatus.OPEN


def _send(deliveries: Sequence[Delivery]) -> None:
    first = deliveries[0]
    if first.channel == Channel.EMAIL:
        mail.send(deliveries)
    else:
        webhook.send(first)


def _failed(deliveries: Sequence[Delivery], why: str) -> None:
    for one in deliveries:
        if one.attempts < MAX_ATTEMPTS:
            wait = dt.timedelta(seconds=BACKOFF_S[one.attempts - 1])
            _finish([one], status=Status.PENDING, due_at=Now() + wait, last_error=why)
        else:
            _give_up(one, why)
    log.warning("notify.failed", channel=deliveries[0].channel, why=why)


@one_commit("give_up")
def _give_up(delivery: Delivery, why: str) -> None:
    if _finish([delivery], status=Status.DEAD, last_error=why):
        interrupt = delivery.notice.interrupt
        ports.audit().record(
            [
                Audit(
                    "notification.dead",
                    SYSTEM,
                    "delivery",
                    str(delivery.pk),
                    project_id=interrupt.project_id,
                    run_id=interrupt.run_id,
                    data={"channel": delivery.channel, "attempts": delivery.attempts, "why": why},
                )
            ]
        )


def _finish(deliveries: Sequence[Delivery], **changes: object) -> int:
    """Write the outcome where the attempt is still this one."""
    return sum(
        Delivery.objects.filter(pk=one.pk, status=Status.SENDING, attempts=one.attempts).update(
            **changes
        )
        for one in deliveries
    )


def _why(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return ports.redactor().text(f"{type(error).__name__}: {text}")[:200]

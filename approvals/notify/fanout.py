"""From a notice to deliveries: who is told, over which of their channels, and when."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.db.models.functions import Now

from approvals.notify.models import Channel, Delivery, Endpoint, Notice, NoticeKind, Status
from approvals.notify.preferences import Preferences, preferences
from approvals.people.deciders import who_may_decide
from runtime_core.access import Can, allowed
from runtime_core.states import InterruptStatus
from runtime_core.transactions import one_commit
from runtime_core.values import Risk

BATCH = 50
RELATED = ("interrupt__run__agent", "interrupt__tool_call", "interrupt__project")


def fan_out() -> int:
    """Make deliveries of all notices that wait for it, each in a transaction of its own; how many."""
    waiting = Notice.objects.filter(fanned_out_at__isnull=True).order_by("created_at")
    return sum(_fan_out(notice_id) for notice_id in waiting.values_list("id", flat=True)[:BATCH])


@one_commit("fan_out")
def _fan_out(notice_id: Any) -> bool:
    notice = (
        Notice.objects.select_for_update(skip_locked=True, of=("self",))
        .filter(id=notice_id, fanned_out_at__isnull=True)
        .select_related(*RELATED)
        .first()
    )
    if notice is None:
        return False
    people = _audience(notice)
    wishes = preferences(person.pk for person in people)
    rows = [row for person in people for row in _for_person(notice, person, wishes[person.pk])]
    rows += _for_endpoints(notice, wishes)
    Delivery.objects.bulk_create(rows, ignore_conflicts=True)
    Notice.objects.filter(id=notice.id).update(fanned_out_at=Now())
    return True


def _audience(notice: Notice) -> list[Any]:
    """Whoever the notice names, or is concerned; never somebody who may not see the request."""
    interrupt = notice.interrupt
    if notice.audience:
        named = list(get_user_model().objects.filter(pk__in=notice.audience, is_active=True))
    elif notice.kind in (NoticeKind.DECIDED, NoticeKind.EXPIRED):
        named = [interrupt.run.created_by] if interrupt.run.created_by else []
    elif interrupt.status == InterruptStatus.OPEN:
        return who_may_decide(interrupt)
    else:
        return []
    return [one for one in named if Can.VIEW in allowed(one, interrupt.project_id)]


def _for_person(notice: Notice, person: Any, wishes: Preferences) -> list[Delivery]:
    risk, rows = notice.interrupt.risk, []
    if wishes.wants(risk, Channel.IN_APP):
        # It is there as soon as it is written.
        rows.append(
            Delivery(
                notice=notice,
                channel=Channel.IN_APP,
                person=person,
                status=Status.SENT,
                sent_at=notice.created_at,
            )
        )
    if person.email and wishes.wants(risk, Channel.EMAIL):
        due_at, is_digest = wishes.mail_time(risk, notice.created_at)
        rows.append(
            Delivery(
                notice=notice,
                channel=Channel.EMAIL,
                person=person,
                due_at=due_at,
                is_digest=is_digest,
            )
        )
    return rows


def _for_endpoints(notice: Notice, wishes: dict[int, Preferences]) -> list[Delivery]:
    """The project's endpoints hear everything; a person's own what they are told themselves."""
    interrupt = notice.interrupt
    level = Risk(interrupt.risk).level
    return [
        Delivery(notice=notice, channel=endpoint.channel, endpoint=endpoint)
        for endpoint in Endpoint.objects.filter(project=interrupt.project_id, is_active=True)
        if Risk(endpoint.min_risk).level <= level and _is_wanted(endpoint, interrupt.risk, wishes)
    ]


def _is_wanted(endpoint: Endpoint, risk: str, wishes: dict[int, Preferences]) -> bool:
    if endpoint.owner_id is None:
        return True
    owner = wishes.get(endpoint.owner_id)
    return owner is not None and owner.wants(risk, endpoint.channel)

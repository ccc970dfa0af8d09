"""What a person wants to be told, how and when; the defaults where they never said."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

from approvals.notify.models import Channel, ChannelChoice, DigestRhythm, QuietTime
from runtime_core.transactions import one_commit
from runtime_core.values import Risk

Choices = dict[tuple[str, str], bool]

DAILY_AT = dt.time(8)
# Everything shows in the app; an e-mail comes for what cannot wait for the next look at it.
DEFAULTS: Choices = {
    (risk.value, channel.value): channel is not Channel.EMAIL or risk.level >= Risk.HIGH.level
    for risk in Risk
    for channel in Channel
}
_PUT_TOGETHER = (Risk.LOW.value, Risk.MEDIUM.value)


@dataclass(frozen=True, slots=True)
class Preferences:
    """One person's wishes."""

    choices: Choices
    quiet: QuietTime

    def wants(self, risk: str, channel: str) -> bool:
        """True if requests of this risk shall come over this channel."""
        return self.choices[risk, channel]

    def mail_time(self, risk: str, now: dt.datetime) -> tuple[dt.datetime, bool]:
        """When an e-mail of this risk may go, and whether it is put together with others. Critical
        ones go at once, whatever the hour.
        """
        if risk == Risk.CRITICAL.value:
            return now, False
        local = now.astimezone(ZoneInfo(self.quiet.time_zone))
        is_digest = self.quiet.digest != DigestRhythm.NONE and risk in _PUT_TOGETHER
        if is_digest:
            local = _next_digest(local, self.quiet.digest)
        return _after_quiet(local, self.quiet).astimezone(dt.UTC), is_digest


def preferences_of(user: Any) -> Preferences:
    """The person's wishes, with defaults where they have none."""
    return preferences([user.pk])[user.pk]


def preferences(user_ids: Iterable[int]) -> dict[int, Preferences]:
    """The same of many people, in two statements."""
    ids = list(user_ids)
    quiet = QuietTime.objects.in_bulk(ids)
    found = {
        user_id: Preferences(dict(DEFAULTS), quiet.get(user_id) or QuietTime(user_id=user_id))
        for user_id in ids
    }
    for choice in ChannelChoice.objects.filter(user_id__in=ids):
        found[choice.user_id].choices[choice.risk, choice.channel] = choice.wanted
    return found


@one_commit("notice_wishes")
def save(user: Any, wanted: set[tuple[str, str]], quiet: dict[str, Any]) -> None:
    """Keep exactly these (risk, channel) pairs and this quiet time."""
    rows = [
        ChannelChoice(user=user, risk=risk, channel=channel, wanted=(risk, channel) in wanted)
        for risk, channel in DEFAULTS
    ]
    ChannelChoice.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["user", "risk", "channel"],
        update_fields=["wanted"],
    )
    QuietTime.objects.update_or_create(user=user, defaults=quiet)


def _next_digest(local: dt.datetime, rhythm: str) -> dt.datetime:
    if rhythm == DigestRhythm.HOURLY:
        return local.replace(minute=0, second=0, microsecond=0) + dt.timedelta(hours=1)
    return _next(local, DAILY_AT)


def _after_quiet(local: dt.datetime, quiet: QuietTime) -> dt.datetime:
    if quiet.quiet_from is None or quiet.quiet_until is None:
        return local
    start, end, now = quiet.quiet_from, quiet.quiet_until, local.time()
    # From 22:00 until 07:00 goes over midnight.
    is_quiet = start <= now < end if start <= end else now >= start or now < end
    return _next(local, end) if is_quiet else local


def _next(local: dt.datetime, at: dt.time) -> dt.datetime:
    today = local.replace(hour=at.hour, minute=at.minute, second=0, microsecond=0)
    return today if today > local else today + dt.timedelta(days=1)

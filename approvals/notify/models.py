"""Rows of notifications: what there is to tell, to whom over which channel, and what people want."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from runtime_core.ids import new_id
from runtime_core.models import Interrupt, Project
from runtime_core.models.sealed import SealedField
from runtime_core.values import Risk


class NoticeKind(models.TextChoices):
    """What there is to tell about a request."""

    OPENED = "opened", "was opened"
    ASSIGNED = "assigned", "was assigned"
    ESCALATED = "escalated", "was escalated"
    DECIDED = "decided", "was decided"
    EXPIRED = "expired", "expired"


class Channel(models.TextChoices):
    """The ways to reach a person or a system."""

    IN_APP = "in_app", "In the app"
    EMAIL = "email", "E-mail"
    WEBHOOK = "webhook", "Webhook"
    SLACK = "slack", "Slack"


class Status(models.TextChoices):
    """Where a delivery is."""

    PENDING = "pending", "waits for its time"
    SENDING = "sending", "is being sent"
    SENT = "sent", "was sent"
    DROPPED = "dropped", "was not needed any more"
    DEAD = "dead", "was given up"


class DigestRhythm(models.TextChoices):
    """How often e-mails of low and medium risk are put together into one."""

    NONE = "none", "Each at once"
    HOURLY = "hourly", "One an hour"
    DAILY = "daily", "One a day, at 08:00"


ENDPOINT_CHANNELS = (Channel.WEBHOOK, Channel.SLACK)
RISKS = [(risk.value, risk.value) for risk in Risk]


class Endpoint(models.Model):
    """An address of another system: all that a project asks goes there, or only what its owner
    would be told. Address and key are stored sealed; an incoming webhook's address is a secret too.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="endpoints")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="endpoints",
        help_text="Empty: everything that the project's people are asked goes there.",
    )
    name = models.CharField(max_length=80)
    channel = models.CharField(
        max_length=8, choices=[(c.value, c.label) for c in ENDPOINT_CHANNELS]
    )
    url = SealedField(null=True)
    secret = SealedField(null=True)
    host = models.CharField(max_length=255, editable=False, help_text="All of it that is shown.")
    min_risk = models.CharField(max_length=8, choices=RISKS, default=Risk.LOW.value)
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "notify_endpoint"
        ordering = ["project", "name"]
        constraints = [
            models.UniqueConstraint(fields=["project", "name"], name="endpoint_name_once"),
            models.CheckConstraint(
                condition=models.Q(channel__in=[c.value for c in ENDPOINT_CHANNELS]),
                name="endpoint_channel_known",
            ),
            models.CheckConstraint(
                condition=models.Q(min_risk__in=[r.value for r in Risk]),
                name="endpoint_risk_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.host})"


class Notice(models.Model):
    """That something happened to a request, written in the transaction in which it did."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    interrupt = models.ForeignKey(Interrupt, models.CASCADE, related_name="notices")
    kind = models.CharField(max_length=10, choices=NoticeKind)
    audience = models.JSONField(
        default=list, help_text="Ids of people; none: everybody who may decide."
    )
    actor_name = models.CharField(max_length=150, blank=True, help_text="Redacted.")
    created_at = models.DateTimeField(db_default=Now())
    fanned_out_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "notify_notice"
        ordering = ["created_at", "id"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(kind__in=NoticeKind.values), name="notice_kind_known"
            ),
        ]
        indexes = [
            models.Index(
                fields=["created_at"],
                condition=models.Q(fanned_out_at__isnull=True),
                name="notice_waiting",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.interrupt_id}"


class Delivery(models.Model):
    """One notice for one person over one channel, or for one endpoint. Its id is the event id: the
    same in every attempt, so that who gets it twice can tell.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    notice = models.ForeignKey(Notice, models.CASCADE, related_name="deliveries")
    channel = models.CharField(max_length=8, choices=Channel)
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="deliveries"
    )
    endpoint = models.ForeignKey(Endpoint, models.CASCADE, null=True, related_name="deliveries")
    status = models.CharField(max_length=8, choices=Status, default=Status.PENDING)
    is_digest = models.BooleanField(default=False)
    attempts = models.PositiveSmallIntegerField(default=0)
    due_at = models.DateTimeField(db_default=Now())
    claimed_until = models.DateTimeField(null=True)
    last_error = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(db_default=Now())
    sent_at = models.DateTimeField(null=True)
    read_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "notify_delivery"
        ordering = ["-created_at", "-id"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(channel__in=Channel.values), name="delivery_channel_known"
            ),
            models.CheckConstraint(
                condition=models.Q(status__in=Status.values), name="delivery_status_known"
            ),
            models.CheckConstraint(
                condition=models.Q(person__isnull=False, endpoint__isnull=True)
                | models.Q(person__isnull=True, endpoint__isnull=False),
                name="delivery_has_one_target",
            ),
            models.UniqueConstraint(
                fields=["notice", "channel", "person"], name="delivery_once_a_person"
            ),
            models.UniqueConstraint(
                fields=["notice", "endpoint"], name="delivery_once_an_endpoint"
            ),
        ]
        indexes = [
            models.Index(
                fields=["due_at"],
                condition=models.Q(status__in=[Status.PENDING, Status.SENDING]),
                name="delivery_due",
            ),
            models.Index(
                fields=["person", "-created_at"],
                condition=models.Q(channel=Channel.IN_APP),
                name="delivery_of_person",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.channel} of {self.notice_id}"


class ChannelChoice(models.Model):
    """Whether a person wants requests of one risk over one channel; where there is no row, the
    default holds.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="channel_choices"
    )
    risk = models.CharField(max_length=8, choices=RISKS)
    channel = models.CharField(max_length=8, choices=Channel)
    wanted = models.BooleanField()

    class Meta:
        db_table = "notify_choice"
        constraints = [
            models.UniqueConstraint(fields=["user", "risk", "channel"], name="choice_once"),
            models.CheckConstraint(
                condition=models.Q(channel__in=Channel.values)
                & models.Q(risk__in=[r.value for r in Risk]),
                name="choice_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user_id}: {self.risk} by {self.channel}"


class QuietTime(models.Model):
    """When a person is left alone, in their own time zone, and how their e-mails are put together."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True, related_name="quiet_time"
    )
    time_zone = models.CharField(max_length=64, default="UTC")
    quiet_from = models.TimeField(null=True, blank=True)
    quiet_until = models.TimeField(null=True, blank=True)
    digest = models.CharField(max_length=8, choices=DigestRhythm, default=DigestRhythm.NONE)

    class Meta:
        db_table = "notify_quiet_time"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(digest__in=DigestRhythm.values), name="quiet_digest_known"
            ),
            models.CheckConstraint(
                condition=models.Q(quiet_from__isnull=True, quiet_until__isnull=True)
                | models.Q(quiet_from__isnull=False, quiet_until__isnull=False),
                name="quiet_has_both_ends",
            ),
        ]

    def __str__(self) -> str:
        return f"quiet time of {self.user_id}"

"""The background work of this side, as Celery ticks; nothing in, nothing out."""

from __future__ import annotations

from celery import shared_task

from approvals.notify.fanout import fan_out
from approvals.notify.send import send_due
from approvals.teamwork.escalation import escalate_due


@shared_task(name="approvals.notify")
def notify() -> None:
    """Make deliveries of new notices, and send what is due."""
    fan_out()
    send_due()


@shared_task(name="approvals.escalate")
def escalate() -> None:
    """Take the steps that are due on the ladders of open requests."""
    escalate_due()

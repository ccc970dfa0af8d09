"""E-mails to people, through Django's mail backends."""

from __future__ import annotations

import smtplib
from collections.abc import Sequence

from django.core.mail import EmailMessage

from approvals.notify.errors import Undeliverable
from approvals.notify.message import Message, message_of
from approvals.notify.models import Delivery

FOOTER = "The link opens the request; deciding needs you to be signed in."


def send(deliveries: Sequence[Delivery]) -> None:
    """One mail with all of these, which are for one person; Undeliverable if the server refuses."""
    told = [message_of(one.notice) for one in deliveries]
    subject = told[0].headline if len(told) == 1 else f"{len(told)} requests in your inbox"
    mail = EmailMessage(
        # A line break in a header would end it.
        subject=f"[Interlock] {' '.join(subject.split())}"[:200],
        body="\n\n".join([*map(_block, told), FOOTER]),
        to=[deliveries[0].person.email],
        headers={"X-Interlock-Event-Id": str(deliveries[0].id)},
    )
    try:
        mail.send()
    except (smtplib.SMTPException, ValueError) as error:
        raise Undeliverable(f"the mail server said {type(error).__name__}") from error


def _block(message: Message) -> str:
    return "\n".join([message.headline, *message.lines, message.link])

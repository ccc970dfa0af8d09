"""Posts to other systems: signed webhooks, and Slack-compatible incoming ones.

The body is signed as `HMAC-SHA256(secret, "<timestamp>.<body>")`; who receives it checks that and
that the timestamp is recent, and keeps the event id to tell a repeat.
"""

from __future__ import annotations

import hashlib
import hmac
import json

from approvals.notify.errors import Undeliverable
from approvals.notify.message import Message, message_of, payload_of
from approvals.notify.models import Channel, Delivery
from approvals.notify.post import post
from runtime_core import clock

_SLACK_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def send(delivery: Delivery) -> None:
    """Post it once; Undeliverable or OSError if it was not taken."""
    endpoint = delivery.endpoint
    if endpoint is None or not endpoint.url:
        raise Undeliverable("its address has to be entered again")
    if endpoint.channel == Channel.SLACK:
        body, headers = slack_body(message_of(delivery.notice)), {}
    else:
        body = json.dumps(payload_of(delivery), separators=(",", ":")).encode()
        headers = signed_headers(endpoint.secret or "", body, int(clock.now().timestamp()))
    headers |= {
        "Interlock-Event": f"interrupt.{delivery.notice.kind}",
        "Interlock-Event-Id": str(delivery.id),
    }
    status = post(endpoint.url, body, headers)
    if not 200 <= status < 300:
        raise Undeliverable(f"it answered with status {status}")


def signed_headers(secret: str, body: bytes, timestamp: int) -> dict[str, str]:
    """The header that proves who sent this body, and when."""
    signed = hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256)
    return {"Interlock-Signature": f"t={timestamp},v1={signed.hexdigest()}"}


def slack_body(message: Message) -> bytes:
    """The message as an incoming webhook of Slack takes it; nothing in it becomes markup."""
    lines = [line.translate(_SLACK_ESCAPES) for line in (message.headline, *message.lines)]
    text = "\n".join([*lines, f"<{message.link}|Open the request>"])
    return json.dumps({"text": text}).encode()

"""What a notification says: tool, risk, run, expiry and a link; no argument of the call."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.urls import reverse

from approvals.notify.models import Delivery, Notice, NoticeKind
from runtime_core.states import InterruptStatus
from runtime_core.values import Json

_SAID = {
    NoticeKind.OPENED: "waits for a decision",
    NoticeKind.ASSIGNED: "was given to you to decide",
    NoticeKind.ESCALATED: "still waits for a decision",
    NoticeKind.EXPIRED: "expired: nobody decided in time",
}
_OUTCOMES = {
    InterruptStatus.APPROVED: "was approved",
    InterruptStatus.EDITED: "was changed and approved",
    InterruptStatus.ANSWERED: "was answered",
    InterruptStatus.REJECTED: "was rejected",
    InterruptStatus.EXPIRED: "expired",
    InterruptStatus.WITHDRAWN: "was withdrawn with its run",
    InterruptStatus.OPEN: "got a decision and waits for more",
}


@dataclass(frozen=True, slots=True)
class Message:
    """One notice in words, the same for every channel."""

    headline: str
    tool: str
    risk: str
    agent: str
    run: str
    expires: str
    link: str

    @property
    def lines(self) -> list[str]:
        """The facts, one a line."""
        return [
            f"Tool: {self.tool}",
            f"Risk: {self.risk}",
            f"Run: {self.run} of {self.agent}",
            f"Expires: {self.expires}",
        ]


def message_of(notice: Notice) -> Message:
    """The notice in words; `notice.interrupt` brings its run, agent and call."""
    interrupt = notice.interrupt
    tool = interrupt.tool_call.tool
    return Message(
        headline=f"{tool} ({interrupt.risk} risk) {said(notice)}",
        tool=tool,
        risk=interrupt.risk,
        agent=interrupt.run.agent.name,
        run=str(interrupt.run_id),
        expires=f"{interrupt.expires_at:%Y-%m-%d %H:%M} UTC",
        link=link_to(notice),
    )


def payload_of(delivery: Delivery) -> dict[str, Json]:
    """The body of a signed webhook."""
    notice, interrupt = delivery.notice, delivery.notice.interrupt
    return {
        "id": str(delivery.id),
        "type": f"interrupt.{notice.kind}",
        "created_at": notice.created_at.isoformat(),
        "data": {
            "interrupt_id": str(interrupt.id),
            "run_id": str(interrupt.run_id),
            "project": interrupt.project.slug,
            "agent": interrupt.run.agent.name,
            "kind": interrupt.kind,
            "tool": interrupt.tool_call.tool,
            "risk": interrupt.risk,
            "status": interrupt.status,
            "expires_at": interrupt.expires_at.isoformat(),
            "url": link_to(notice),
        },
    }


def said(notice: Notice) -> str:
    """What happened, as the end of a sentence about the request."""
    if notice.kind == NoticeKind.DECIDED:
        outcome = _OUTCOMES[InterruptStatus(notice.interrupt.status)]
        return f"{outcome} by {notice.actor_name}" if notice.actor_name else outcome
    return _SAID[NoticeKind(notice.kind)]


def link_to(notice: Notice) -> str:
    """The page of the request. Opening it decides nothing."""
    path = reverse("interrupt", args=[notice.interrupt_id])
    return settings.INTERLOCK_BASE_URL.rstrip("/") + path

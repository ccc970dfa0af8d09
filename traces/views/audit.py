"""The audit list: who did what, and how the chain stands."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from runtime_core.callers import Caller
from runtime_core.limits import limits
from runtime_core.sanitize import storable_text
from traces import queries
from traces.audit.state import chain_state
from traces.models import AuditEntry
from traces.pages import caller, page

ACTIONS = (
    "run.started",
    "run.cancelled",
    "run.forced",
    "run.paused",
    "run.resumed",
    "run.retried",
    "run.forked",
    "run.ended",
    "run.compensated",
    "interrupt.opened",
    "interrupt.viewed",
    "interrupt.claimed",
    "interrupt.released",
    "interrupt.assigned",
    "interrupt.unassigned",
    "interrupt.proposed",
    "interrupt.decided",
    "interrupt.undone",
    "interrupt.overridden",
    "interrupt.rebound",
    "interrupt.escalated",
    "interrupt.expired",
    "interrupt.withdrawn",
    "decision.denied",
    "access.denied",
    "permission.changed",
    "policy.changed",
    "grant.created",
    "grant.used",
    "grant.revoked",
    "delegation.created",
    "delegation.revoked",
    "notification.dead",
    "notification.resent",
    "personal.viewed",
    "redaction.changed",
    "redaction.dry_run",
    "vault.rotated",
    "queue.changed",
    "quota.changed",
    "agent.applied",
    "token.issued",
    "token.revoked",
    "retention.changed",
    "retention.run",
    "retention.thread",
    "export.requested",
    "export.made",
    "export.failed",
    "export.downloaded",
    "export.expired",
    "data.deletion_requested",
    "data.deleted",
    "data.forgotten",
    "audit.erased",
    "hold.set",
    "hold.released",
    "auth.login",
    "auth.login_failed",
    "auth.logout",
)
_TONES = {"denied": "bad", "login_failed": "bad", "decided": "ok", "cancelled": "late"}


@dataclass(frozen=True, slots=True)
class Row:
    """One line: the entry and its payload as text."""

    entry: AuditEntry
    payload: str
    tone: str
    short_object: str


@page
@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """The newest entries that this person may see; filters and cursor are in the address."""
    chosen = _filters(request)
    found = queries.audit_page(
        _narrowed(caller(request), chosen), _id(request.GET.get("cursor", "")), limits().page_size
    )
    kept = {key: value for key, value in chosen.items() if value}
    context = {
        "rows": [_row(entry) for entry in found.items],
        "filters": chosen,
        "is_narrowed": bool(kept),
        "actions": ACTIONS,
        "chain": chain_state(),
        "next_url": f"?{urlencode({**kept, 'cursor': found.next_cursor})}"
        if found.next_cursor
        else "",
        "first_url": f"?{urlencode(kept)}" if request.GET.get("cursor") else "",
    }
    return render(request, "traces/audit.html", context)


def _filters(request: HttpRequest) -> dict[str, str]:
    action = request.GET.get("action", "")
    run = _id(request.GET.get("run", ""))
    return {
        "action": action if action in ACTIONS else "",
        "actor": storable_text(request.GET.get("actor", ""))[:150],
        "run": str(run) if run else "",
    }


def _narrowed(who: Caller, chosen: dict[str, str]) -> Any:
    rows = queries.audit_entries(who)
    if chosen["action"]:
        rows = rows.filter(action=chosen["action"])
    if chosen["actor"]:
        rows = rows.filter(actor_name=chosen["actor"])
    if chosen["run"]:
        rows = rows.filter(run_id=chosen["run"])
    return rows


def _row(entry: AuditEntry) -> Row:
    payload = getattr(entry, "payload", None)
    text = payload.body if payload else ""
    shown = (
        json.dumps(json.loads(text), indent=2, ensure_ascii=False) if text not in ("", "{}") else ""
    )
    tone = _TONES.get(entry.action.split(".")[-1], "neutral")
    return Row(entry, shown, tone, _short(entry.object_id))


def _short(text: str) -> str:
    return text.replace("-", "")[-8:] if _id(text) else text


def _id(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None

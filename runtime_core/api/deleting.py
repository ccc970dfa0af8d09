"""What the two addresses that delete have in common."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from runtime_core import ports
from runtime_core.access import Can
from runtime_core.api.auth import caller
from runtime_core.api.idempotency import Answer, once
from runtime_core.api.schemas import DeleteIn


def deleted(
    request: HttpRequest,
    project_of: Callable[[], uuid.UUID],
    kind: str,
    object_id: uuid.UUID,
    payload: DeleteIn | None,
) -> HttpResponse:
    """Ask for the deletion of what the caller sees in a project; only those who manage it may.

    It is looked for within the write: a repeat with the same key no longer finds it, and gets the first answer.
    """
    who = caller(request)
    reason = payload.reason if payload else ""

    def act() -> Answer:
        who.require(project_of(), Can.MANAGE)
        return 202, ports.deletions().ask(who.actor, kind, object_id, reason)

    return once(request, act)

"""A person's own API tokens: which there are, and ending one."""

from __future__ import annotations

import uuid
from typing import Any

from runtime_core import clock, ports
from runtime_core.errors import NotFound
from runtime_core.models import ApiToken
from runtime_core.transactions import one_commit
from runtime_core.values import Actor, Audit

SHOWN_MAX = 100


def of(user: Any) -> list[ApiToken]:
    """The person's tokens that still let somebody in, newest first."""
    found = ApiToken.objects.filter(user=user, revoked_at=None).select_related("project")
    return list(found.order_by("-created_at")[:SHOWN_MAX])


def revoke(actor: Actor, token_id: uuid.UUID) -> None:
    """End a token of `actor`'s own at once; open streams of it close within seconds. NotFound for any
    other.
    """
    with one_commit("revoke token"):
        mine = ApiToken.objects.select_for_update().filter(user=actor.user_id, revoked_at=None)
        token = mine.filter(id=token_id).first()
        if token is None:
            raise NotFound("There is no such token of yours.")
        ApiToken.objects.filter(id=token.id).update(revoked_at=clock.now())
        ports.audit().record(
            [
                Audit(
                    action="token.revoked",
                    actor=actor,
                    object_type="api_token",
                    object_id=str(token.id),
                    project_id=token.project_id,
                    data={"name": token.name, "machine": token.is_machine},
                )
            ]
        )

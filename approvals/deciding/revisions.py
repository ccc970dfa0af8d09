"""The versions of an interrupt as rows: what stood to decide on, so that it can be shown, compared and restored."""

from __future__ import annotations

from approvals.models import Revision
from runtime_core import ports, scope
from runtime_core.decisions import Locked
from runtime_core.models import Interrupt
from runtime_core.sanitize import storable_text
from runtime_core.values import Actor

ASKED, EDITED, PROPOSED, UNDONE, POLICY = "asked", "edited", "proposed", "undone", "policy"


@scope.of_run(lambda locked, *_, **__: locked.run)
def keep(locked: Locked, cause: str, actor: Actor | None = None, comment: str = "") -> Revision:
    """Keep the version that stands, unless it is kept already."""
    interrupt, call = locked.interrupt, locked.tool_call
    row, _ = Revision.objects.get_or_create(
        interrupt=interrupt,
        version=interrupt.version,
        defaults={
            "cause": cause,
            "actor_id": actor.user_id if actor else None,
            "actor_name": actor.name if actor else "",
            "editor_id": interrupt.changed_by_id,
            "is_edited": "edited_args" in interrupt.detail,
            "digest": interrupt.digest,
            "args_text": call.args_text,
            "args_redacted": call.args_redacted,
            "comment": ports.redactor().text(storable_text(comment)),
        },
    )
    return row


def of(interrupt: Interrupt) -> list[Revision]:
    """The versions that are kept, oldest first; none while the first still stands."""
    return list(interrupt.revisions.all())

"""Asked right before an approved call runs: does the one who allowed it still have the right to?"""

from __future__ import annotations

import uuid

from approvals.rulings import ruling_on
from runtime_core.models import Interrupt


class Guard:
    """The decision guard that `runtime_core.ports` binds."""

    def revoked(self, interrupt_id: uuid.UUID) -> str | None:
        """None if the decision still stands, else why it does not."""
        interrupt = (
            Interrupt.objects.select_related("run", "decided_by").filter(id=interrupt_id).first()
        )
        if interrupt is None:
            return "The decision is gone, so the call was not run."
        if interrupt.decided_by is None:
            return "Nobody stands behind the decision any more, so the call was not run."
        if ruling_on(interrupt, interrupt.decided_by_id).may:
            return None
        who = interrupt.decided_by.get_username()
        return f"{who}, who decided, no longer has the right to; the call was not run."


def guard() -> Guard:
    """The guard of this process."""
    return Guard()

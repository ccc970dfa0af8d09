"""The audit as the product binds it: what is kept there is also what people are told of."""

from __future__ import annotations

from collections.abc import Sequence

from approvals.notify import outbox
from runtime_core.values import Audit
from traces.audit import log as audit_log


class Recorder:
    """Keeps audit entries and writes the notices that follow from them, in the caller's
    transaction.
    """

    def record(self, entries: Sequence[Audit]) -> None:
        """Add both; they commit with what they tell of, or not at all."""
        audit_log().record(entries)
        outbox.note(entries)


def log() -> Recorder:
    """The recorder of this process."""
    return Recorder()

"""What somebody asks to be decided, and whether it is shaped as their request takes it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from runtime_core.errors import InvalidPayload
from runtime_core.models import Interrupt
from runtime_core.sanitize import canonical, storable
from runtime_core.states import ALLOWED_ACTIONS, InterruptKind
from runtime_core.values import Json

REASON_MAX = 4_000


@dataclass(frozen=True, slots=True)
class Opinion:
    """What somebody asks to be decided, and on exactly what: `version` and `digest` are what they
    were shown.
    """

    action: str
    version: int
    digest: str
    args: Mapping[str, Json] | None = None
    response: Json = None
    reason: str = ""
    compensate: bool = False
    """With the stop of a run whose outcome is unknown: what it did is taken back, as far as that can be."""

    @property
    def payload_digest(self) -> str:
        """SHA-256 over all of it: equal for a repeat, different for another opinion."""
        said = asdict(self)
        if not self.compensate:
            del said["compensate"]  # it was not always there to be said
        return hashlib.sha256(canonical(storable(said)).encode()).hexdigest()


def check_shape(interrupt: Interrupt, opinion: Opinion) -> None:
    """InvalidPayload, naming the field, where the opinion has too much or too little for its action."""
    allowed = ALLOWED_ACTIONS[InterruptKind(interrupt.kind)]
    if opinion.action not in allowed:
        raise InvalidPayload(
            f"action: this request takes {', '.join(allowed)}, not {opinion.action}.",
            field="action",
        )
    if opinion.action == "edit" and opinion.args is None:
        raise InvalidPayload("args: an edit needs the arguments that shall run.", field="args")
    if opinion.action != "edit" and opinion.args is not None:
        raise InvalidPayload("args: only an edit takes arguments; nothing was done.", field="args")
    if opinion.action == "respond" and opinion.response is None:
        raise InvalidPayload("response: an answer is needed.", field="response")
    if opinion.action != "respond" and opinion.response is not None:
        raise InvalidPayload("response: only respond takes an answer.", field="response")
    stops = opinion.action == "reject" and interrupt.kind == InterruptKind.OUTCOME_UNKNOWN
    if opinion.compensate and not stops:
        raise InvalidPayload(
            "compensate: only with the rejection of a call whose outcome is unknown.",
            field="compensate",
        )
    if len(opinion.reason) > REASON_MAX:
        raise InvalidPayload(f"reason: at most {REASON_MAX} characters.", field="reason")

"""What a checkpoint holds, and the rolling digest that ties it to the run's messages.

A checkpoint refers to the messages before it by their number and digest and never copies them: what it costs does not
grow with the run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from runtime_core.checkpoints.plain import require_plain
from runtime_core.checkpoints.upcast import SCHEMA_VERSION, State, upcast
from runtime_core.errors import StateUnusable
from runtime_core.ids import new_id
from runtime_core.models import Checkpoint
from runtime_core.sanitize import canonical
from runtime_core.values import Json

EMPTY_DIGEST = hashlib.sha256(b"interlock messages v1").hexdigest()


@dataclass(frozen=True, slots=True)
class Verified:
    """What a checkpoint that verified gives: the digest over all messages given, and its state as of today."""

    rolling: str
    state: State


def extend(digest: str, bodies: Iterable[str]) -> str:
    """The rolling digest after these message bodies: SHA-256 over the digest before, then the body, for each."""
    for body in bodies:
        digest = hashlib.sha256(f"{digest}\n{body}".encode("utf-8", "surrogatepass")).hexdigest()
    return digest


def row(*, step: int, reason: str, messages: int, rolling: str, state: Json) -> dict[str, Json]:
    """A checkpoint as `sql.commit_step` inserts it. StateNotPlain if its state would not come back as it is."""
    require_plain(state)
    return {
        "id": str(new_id()),
        "step": step,
        "reason": reason,
        "schema_version": SCHEMA_VERSION,
        "messages": messages,
        "state": state,
        "digest": seal(rolling, state),
    }


def seal(rolling: str, state: Json) -> str:
    """The digest that a checkpoint stores."""
    return seal_text(rolling, canonical(state))


def seal_text(rolling: str, text: str) -> str:
    """The same for a state whose canonical text is at hand."""
    return hashlib.sha256(f"{rolling}\n{text}".encode()).hexdigest()


def verify(checkpoint: Checkpoint | None, bodies: Sequence[str]) -> Verified:
    """The checkpoint's state, once it proved that it and the messages it covers are as they were saved.

    StateUnusable says what does not fit: its version, its digest, or messages that are missing.
    """
    if checkpoint is None:
        return Verified(extend(EMPTY_DIGEST, bodies), {})
    try:
        covered = _covered(checkpoint, bodies)
        state = upcast(checkpoint.state, checkpoint.schema_version)
    except StateUnusable as error:
        raise StateUnusable(
            f"Checkpoint {checkpoint.id} of step {checkpoint.step + 1} cannot be used: "
            f"{error.message}. Nothing was continued.",
            checkpoint=str(checkpoint.id),
        ) from None
    return Verified(extend(covered, bodies[checkpoint.messages :]), state)


def _covered(checkpoint: Checkpoint, bodies: Sequence[str]) -> str:
    """The digest over the messages that it covers."""
    if checkpoint.messages > len(bodies):
        missing = checkpoint.messages - len(bodies)
        raise StateUnusable(f"{missing} of the messages that it covers are missing")
    covered = extend(EMPTY_DIGEST, bodies[: checkpoint.messages])
    if seal(covered, checkpoint.state) != checkpoint.digest:
        raise StateUnusable("it or its messages were changed after it was saved")
    return covered

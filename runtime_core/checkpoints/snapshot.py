"""What a checkpoint holds, and the rolling digest that ties it to the run's messages."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from runtime_core.errors import StateUnusable
from runtime_core.ids import new_id
from runtime_core.models import Checkpoint
from runtime_core.sanitize import canonical
from runtime_core.values import Json

SCHEMA_VERSION = 1
EMPTY_DIGEST = hashlib.sha256(b"interlock messages v1").hexdigest()


def extend(digest: str, bodies: Iterable[str]) -> str:
    """The rolling digest after these message bodies: SHA-256 over the digest before, then the body, for each."""
    for body in bodies:
        digest = hashlib.sha256(f"{digest}\n{body}".encode("utf-8", "surrogatepass")).hexdigest()
    return digest


def row(*, step: int, reason: str, messages: int, rolling: str, state: Json) -> dict[str, Json]:
    """A checkpoint as `sql.COMMIT_STEP` inserts it."""
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
    return hashlib.sha256(f"{rolling}\n{canonical(state)}".encode()).hexdigest()


def verify(checkpoint: Checkpoint | None, bodies: list[str]) -> str:
    """The rolling digest over all `bodies`, after the checkpoint proved that those it covers are as they were saved."""
    if checkpoint is None:
        return extend(EMPTY_DIGEST, bodies)
    if checkpoint.schema_version != SCHEMA_VERSION:
        raise StateUnusable(
            f"Checkpoint {checkpoint.id} has schema version {checkpoint.schema_version}; this release "
            f"reads {SCHEMA_VERSION}. The run was not continued; retry it after an upgrade."
        )
    if checkpoint.messages > len(bodies):
        raise StateUnusable(f"Checkpoint {checkpoint.id} covers messages that are missing.")
    covered = extend(EMPTY_DIGEST, bodies[: checkpoint.messages])
    if seal(covered, checkpoint.state) != checkpoint.digest:
        raise StateUnusable(
            f"Checkpoint {checkpoint.id} or its messages were changed after it was saved."
        )
    return extend(covered, bodies[checkpoint.messages :])

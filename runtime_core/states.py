"""The states of runs, steps, tool calls and interrupts and every move between them, as data.

`docs/state_machine.md` is generated from `RUN_MOVES`; `transitions.py` refuses whatever is not listed here.
"""

from __future__ import annotations

import enum

from runtime_core.errors import IllegalTransition


class RunStatus(enum.StrEnum):
    """Where a run is. `cancel_requested_at` is a fact beside it, not a state."""

    PENDING = "pending"
    RUNNING = "running"
    WAITING = "waiting"
    INTERRUPTED = "interrupted"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"

    @property
    def ended(self) -> bool:
        """True if nothing but a retry can move the run."""
        return self in ENDED


ENDED = frozenset({RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED, RunStatus.TIMED_OUT})
PARKED = frozenset({RunStatus.PENDING, RunStatus.WAITING, RunStatus.INTERRUPTED, RunStatus.PAUSED})

_P, _R, _W, _I, _H = (
    RunStatus.PENDING,
    RunStatus.RUNNING,
    RunStatus.WAITING,
    RunStatus.INTERRUPTED,
    RunStatus.PAUSED,
)

RUN_MOVES: dict[tuple[RunStatus, RunStatus], frozenset[str]] = {
    (_P, _R): frozenset({"claim"}),
    (_P, _H): frozenset({"pause"}),
    (_P, _I): frozenset({"undone"}),
    (_P, RunStatus.CANCELLED): frozenset({"cancel"}),
    (_P, RunStatus.TIMED_OUT): frozenset({"deadline"}),
    (_R, _P): frozenset({"lease_lost", "released", "forced", "turn"}),
    (_R, _W): frozenset({"backoff", "children", "stopping", "quota"}),
    (_R, _I): frozenset({"asked"}),
    (_R, _H): frozenset({"budget", "pause", "unusable"}),
    (_R, RunStatus.COMPLETED): frozenset({"finished"}),
    (_R, RunStatus.FAILED): frozenset({"error", "stopped", "worker_lost"}),
    (_R, RunStatus.CANCELLED): frozenset({"cancel"}),
    (_R, RunStatus.TIMED_OUT): frozenset({"deadline"}),
    (_W, _P): frozenset({"wake", "answered"}),
    (_W, _H): frozenset({"pause"}),
    (_W, RunStatus.CANCELLED): frozenset({"cancel"}),
    (_W, RunStatus.TIMED_OUT): frozenset({"deadline"}),
    (_I, _P): frozenset({"decided", "expired"}),
    (_I, RunStatus.CANCELLED): frozenset({"cancel"}),
    (_H, _P): frozenset({"resume"}),
    (_H, _I): frozenset({"undone"}),
    (_H, RunStatus.CANCELLED): frozenset({"cancel"}),
    (RunStatus.FAILED, _P): frozenset({"retry"}),
    (RunStatus.TIMED_OUT, _P): frozenset({"retry"}),
}


class CallStatus(enum.StrEnum):
    """Where a tool call is in the ledger."""

    PROPOSED = "proposed"
    AWAITING_APPROVAL = "awaiting_approval"
    APPROVED = "approved"
    EXECUTING = "executing"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    REJECTED = "rejected"
    UNKNOWN = "unknown"
    SKIPPED = "skipped"
    COMPENSATED = "compensated"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        """True if the call has an answer for the model."""
        return self in CALL_ENDED


CALL_ENDED = frozenset(
    {
        CallStatus.SUCCEEDED,
        CallStatus.FAILED,
        CallStatus.REJECTED,
        CallStatus.SKIPPED,
        CallStatus.COMPENSATED,
        CallStatus.CANCELLED,
    }
)


class InterruptStatus(enum.StrEnum):
    """Where an interrupt is."""

    OPEN = "open"
    APPROVED = "approved"
    REJECTED = "rejected"
    EDITED = "edited"
    ANSWERED = "answered"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"


class InterruptKind(enum.StrEnum):
    """Why a person is asked."""

    TOOL_APPROVAL = "tool_approval"
    QUESTION = "question"
    OUTCOME_UNKNOWN = "outcome_unknown"
    DRIFT = "drift"


ALLOWED_ACTIONS: dict[InterruptKind, tuple[str, ...]] = {
    InterruptKind.TOOL_APPROVAL: ("approve", "edit", "respond", "reject"),
    InterruptKind.QUESTION: ("respond", "reject"),
    InterruptKind.OUTCOME_UNKNOWN: ("respond", "approve", "reject"),
    InterruptKind.DRIFT: ("approve", "reject"),
}

SETTLED_BY_ACTION: dict[str, InterruptStatus] = {
    "approve": InterruptStatus.APPROVED,
    "reject": InterruptStatus.REJECTED,
    "edit": InterruptStatus.EDITED,
    "respond": InterruptStatus.ANSWERED,
}


class CheckpointReason(enum.StrEnum):
    """What a checkpoint was taken after."""

    PLAN = "plan"  # the model said which calls it wants
    TOOL_RESULT = "tool_result"
    ROUND = "round"  # the last result of a turn: the model is asked next
    RECOVERED = "recovered"
    REFUSED = "refused"
    INTERRUPT = "interrupt"
    DECIDED = "decided"
    COMPACTION = "compaction"  # older messages are no longer sent to the model
    WAIT = "wait"
    PAUSE = "pause"
    END = "end"
    NODE = "node"  # a node of a graph, with what it has set
    STATE = "state"  # the same, with the whole state


# What people look for and forks start from: housekeeping never takes these away.
KEY_REASONS = frozenset(
    {
        CheckpointReason.INTERRUPT,
        CheckpointReason.DECIDED,
        CheckpointReason.PAUSE,
        CheckpointReason.END,
        # A graph's state is put together from these.
        CheckpointReason.NODE,
        CheckpointReason.STATE,
    }
)


def check_move(source: RunStatus, target: RunStatus, cause: str) -> None:
    """Pass if the table allows the move for that cause; else IllegalTransition, naming what is allowed."""
    if cause in RUN_MOVES.get((source, target), frozenset()):
        return
    raise IllegalTransition(
        f"A run that is {source.value} cannot become {target.value} by {cause}.",
        status=source.value,
    )


def allowed_sources(target: RunStatus, cause: str) -> frozenset[RunStatus]:
    """From which statuses a cause may lead to `target`."""
    return frozenset(s for (s, t), causes in RUN_MOVES.items() if t is target and cause in causes)

"""How a step may end: a closed set, and the status that each leads to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from runtime_core.states import CheckpointReason, RunStatus


@dataclass(frozen=True, slots=True)
class Go:
    """The run goes on with its next step."""


@dataclass(frozen=True, slots=True)
class Done:
    """The run is complete. `output` is redacted."""

    output: str


@dataclass(frozen=True, slots=True)
class Ask:
    """People must decide before the run goes on."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Nobody needs to hold the run for so long: it backs off, or waits for its `children` (to end, or to stop).

    With `waits_for` it waits for a place of that quota, however long that takes.
    """

    seconds: float
    cause: str = "backoff"
    waits_for: str = ""


@dataclass(frozen=True, slots=True)
class Fail:
    """The run cannot go on; `message` is redacted."""

    code: str
    message: str
    retryable: bool = False
    cause: str = "error"


@dataclass(frozen=True, slots=True)
class Stop:
    """Someone or something ends the work: `cancel`, `deadline`, `pause`, `budget`, `turn`, `shutdown` or `lost`."""

    reason: str
    message: str = ""


Outcome = Go | Done | Ask | Wait | Fail | Stop

_STOPPED = {
    "cancel": RunStatus.CANCELLED,
    "deadline": RunStatus.TIMED_OUT,
    "pause": RunStatus.PAUSED,
    "budget": RunStatus.PAUSED,
}


def target(outcome: Outcome) -> tuple[RunStatus, str]:
    """The status an outcome leads to and the cause, as the table of moves names it."""
    match outcome:
        case Go():
            return RunStatus.RUNNING, ""
        case Done():
            return RunStatus.COMPLETED, "finished"
        case Ask():
            return RunStatus.INTERRUPTED, "asked"
        case Wait(cause=cause):
            return RunStatus.WAITING, cause
        case Fail(cause=cause):
            return RunStatus.FAILED, cause
        case Stop(reason=reason) if reason in _STOPPED:
            return _STOPPED[reason], reason
        case Stop(reason=reason):
            raise ValueError(f"{reason} is not a status: the run is released, or not ours")
        case _:
            assert_never(outcome)


def checkpoint_reason(outcome: Outcome, going_on: CheckpointReason) -> CheckpointReason:
    """Why a checkpoint is taken with this outcome; `going_on` where the run goes on."""
    match outcome:
        case Go():
            return going_on
        case Ask():
            return CheckpointReason.INTERRUPT
        case Wait():
            return CheckpointReason.WAIT
        case Stop() if target(outcome)[0] is RunStatus.PAUSED:
            return CheckpointReason.PAUSE
        case _:
            return CheckpointReason.END

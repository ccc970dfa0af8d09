"""What becomes of the last call that a run left behind: one strategy for every case, decided from facts alone."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from runtime_core.states import CallStatus
from runtime_core.values import Effect


class Strategy(enum.StrEnum):
    """What recovery does about one call."""

    SKIP = "skip"  # it has an answer, or nothing to take back: what is stored counts
    RUN = "run"  # it was let run and not begun: it is checked again, and run
    REPLAY = "replay"  # it may have begun, and running it again with its key is harmless
    ASK_TOOL = "ask_tool"  # it may have happened, and its tool can say
    COMPENSATE = "compensate"  # it happened, or may have, and shall be taken back
    ASK = "ask"  # only a person can say


@dataclass(frozen=True, slots=True)
class Facts:
    """What the choice depends on. `effect_now` is what the tool declares today; None if there is no such tool."""

    status: CallStatus
    effect: Effect
    effect_now: Effect | None
    can_be_asked: bool = False
    taking_back: bool = False
    """True once the run is over and its effects shall be undone."""
    outcome_unknown: bool = False
    """True if the call was closed without anybody knowing whether it happened."""


def strategy(facts: Facts) -> Strategy:
    """The strategy for a call; never one that could make an effect happen twice without somebody saying so."""
    if facts.taking_back:
        return _after_the_end(facts)
    match facts.status:
        case CallStatus.APPROVED:
            return Strategy.RUN
        case CallStatus.EXECUTING:
            return _in_doubt(facts)
        case _ if facts.status.ended:
            return Strategy.SKIP
        case _:
            return Strategy.ASK


def _in_doubt(facts: Facts) -> Strategy:
    # A tool that was harmless when the call began and is not any more, or the other way round, is not harmless.
    effects = (facts.effect, facts.effect_now or facts.effect)
    if all(effect.repeatable for effect in effects):
        return Strategy.REPLAY
    return Strategy.ASK_TOOL if facts.can_be_asked else Strategy.ASK


def _after_the_end(facts: Facts) -> Strategy:
    may_have_happened = facts.outcome_unknown or facts.status in (
        CallStatus.SUCCEEDED,
        CallStatus.EXECUTING,
        CallStatus.UNKNOWN,
    )
    if may_have_happened and facts.effect_now is Effect.COMPENSATABLE:
        return Strategy.COMPENSATE
    return Strategy.SKIP

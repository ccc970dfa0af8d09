"""What recovery does about a call: every combination of what is known, in one table."""

from __future__ import annotations

import itertools

import pytest

from runtime_core.checkpoints.recover import Facts, Strategy, strategy
from runtime_core.states import CallStatus
from runtime_core.values import Effect

READ, IDEMPOTENT, ONCE, UNDOABLE = (
    Effect.READ,
    Effect.IDEMPOTENT,
    Effect.ONCE,
    Effect.COMPENSATABLE,
)
EXECUTING, APPROVED = CallStatus.EXECUTING, CallStatus.APPROVED


@pytest.mark.parametrize(
    ("facts", "chosen"),
    [
        (Facts(APPROVED, ONCE, ONCE), Strategy.RUN),
        (Facts(EXECUTING, READ, READ), Strategy.REPLAY),
        (Facts(EXECUTING, IDEMPOTENT, IDEMPOTENT), Strategy.REPLAY),
        (Facts(EXECUTING, IDEMPOTENT, READ), Strategy.REPLAY),
        (Facts(EXECUTING, READ, None), Strategy.REPLAY),
        (Facts(EXECUTING, IDEMPOTENT, ONCE), Strategy.ASK),
        (Facts(EXECUTING, ONCE, IDEMPOTENT), Strategy.ASK),
        (Facts(EXECUTING, ONCE, ONCE), Strategy.ASK),
        (Facts(EXECUTING, ONCE, None), Strategy.ASK),
        (Facts(EXECUTING, ONCE, ONCE, can_be_asked=True), Strategy.ASK_TOOL),
        (Facts(EXECUTING, UNDOABLE, UNDOABLE), Strategy.ASK),
        (Facts(EXECUTING, UNDOABLE, UNDOABLE, can_be_asked=True), Strategy.ASK_TOOL),
        (Facts(CallStatus.UNKNOWN, ONCE, ONCE, can_be_asked=True), Strategy.ASK),
        (Facts(CallStatus.PROPOSED, READ, READ), Strategy.ASK),
        (Facts(CallStatus.AWAITING_APPROVAL, READ, READ), Strategy.ASK),
        (Facts(CallStatus.SUCCEEDED, ONCE, ONCE), Strategy.SKIP),
        (Facts(CallStatus.SUCCEEDED, UNDOABLE, UNDOABLE, taking_back=True), Strategy.COMPENSATE),
        (Facts(EXECUTING, UNDOABLE, UNDOABLE, taking_back=True), Strategy.COMPENSATE),
        (Facts(CallStatus.UNKNOWN, UNDOABLE, UNDOABLE, taking_back=True), Strategy.COMPENSATE),
        (Facts(CallStatus.SUCCEEDED, UNDOABLE, ONCE, taking_back=True), Strategy.SKIP),
        (Facts(CallStatus.SUCCEEDED, UNDOABLE, None, taking_back=True), Strategy.SKIP),
        (Facts(CallStatus.FAILED, UNDOABLE, UNDOABLE, taking_back=True), Strategy.SKIP),
        (Facts(CallStatus.COMPENSATED, UNDOABLE, UNDOABLE, taking_back=True), Strategy.SKIP),
        (Facts(CallStatus.CANCELLED, UNDOABLE, UNDOABLE, taking_back=True), Strategy.SKIP),
        (
            Facts(CallStatus.CANCELLED, UNDOABLE, UNDOABLE, taking_back=True, outcome_unknown=True),
            Strategy.COMPENSATE,
        ),
    ],
)
def test_the_strategy_for_a_call(facts: Facts, chosen: Strategy) -> None:
    assert strategy(facts) is chosen


def test_nothing_that_may_have_happened_is_run_again_unless_that_is_harmless() -> None:
    flags = (False, True)
    for status, before, now, asked, over, unknown in itertools.product(
        CallStatus, Effect, [*Effect, None], flags, flags, flags
    ):
        facts = Facts(status, before, now, asked, over, unknown)
        chosen = strategy(facts)
        if chosen is Strategy.REPLAY:
            assert before.repeatable and (now is None or now.repeatable), facts
        if chosen is Strategy.RUN:
            assert status is CallStatus.APPROVED, facts
        if status.ended and not over:
            assert chosen is Strategy.SKIP, facts
        if chosen is Strategy.COMPENSATE:
            assert over and now is UNDOABLE, facts

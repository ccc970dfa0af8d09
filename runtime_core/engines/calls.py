"""What every engine does about calls that have not ended: the same order, the same stops."""

from __future__ import annotations

from runtime_core.engines.port import AskPeople, AwaitChildren, GiveUp, Move, RunCall, View
from runtime_core.errors import OutcomeUnknown
from runtime_core.states import CallStatus

_RUNNABLE = (CallStatus.EXECUTING, CallStatus.APPROVED)


def settle_calls(view: View) -> Move | None:
    """Run what may run, in order; then ask about the rest, then wait for other agents. None: every call has ended."""
    if not view.calls:
        return None
    if _is_stopped(view):
        return GiveUp(OutcomeUnknown.code, "A person stopped the run: a tool's outcome is unknown.")
    if any(call.status is CallStatus.UNKNOWN for call in view.calls):
        return AskPeople()
    for call in view.calls:
        if call.status in _RUNNABLE and not call.awaits:
            return RunCall(call)
    if any(not call.status.ended and not call.awaits for call in view.calls):
        return AskPeople()
    if any(call.awaits for call in view.calls):
        return AwaitChildren()
    return None


def _is_stopped(view: View) -> bool:
    """True if a person stopped the run because nobody knows whether a call happened."""
    return any(
        call.status is CallStatus.CANCELLED and call.error_code == OutcomeUnknown.code
        for call in view.calls
    )

"""react: model, its tool calls, their results, model again, until it answers without a call."""

from __future__ import annotations

from runtime_core.engines.port import AskModel, AskPeople, Finish, GiveUp, Move, RunCall, View
from runtime_core.errors import OutcomeUnknown
from runtime_core.states import CallStatus

_RUNNABLE = (CallStatus.EXECUTING, CallStatus.APPROVED)


class React:
    """The engine of most agents. Calls of one turn run in their order; those that ask wait until the rest has run."""

    def next_move(self, view: View) -> Move:
        if not view.answered:
            return AskModel()
        if _is_stopped(view):
            return GiveUp(
                OutcomeUnknown.code, "A person stopped the run: a tool's outcome is unknown."
            )
        if any(call.status is CallStatus.UNKNOWN for call in view.calls):
            return AskPeople()
        for call in view.calls:
            if call.status in _RUNNABLE:
                return RunCall(call)
        if any(not call.status.ended for call in view.calls):
            return AskPeople()
        return AskModel() if view.calls else Finish(view.text)


def _is_stopped(view: View) -> bool:
    """True if a person stopped the run because nobody knows whether a call happened."""
    return any(
        call.status is CallStatus.CANCELLED and call.error_code == OutcomeUnknown.code
        for call in view.calls
    )

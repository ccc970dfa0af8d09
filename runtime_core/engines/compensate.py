"""compensate: takes effects back one after the other, and stops at the first that cannot be."""

from __future__ import annotations

from runtime_core.engines.port import AskPeople, Finish, GiveUp, Move, RunCall, View
from runtime_core.states import CallStatus

_RUNNABLE = (CallStatus.EXECUTING, CallStatus.APPROVED)


class Compensate:
    """The engine of runs that take back what another one did; its calls stand in reverse order already."""

    def next_move(self, view: View) -> Move:
        for call in view.calls:
            if call.status in _RUNNABLE:
                return RunCall(call)
            if not call.status.ended:
                return AskPeople()
            if call.status is not CallStatus.SUCCEEDED:
                return GiveUp(
                    "compensation_failed",
                    f"{call.tool} could not be taken back, and nothing that was done before it was touched.",
                )
        done = ", ".join(call.tool for call in view.calls)
        return Finish(f"Taken back: {done}.")

"""react: model, its tool calls, their results, model again, until it answers without a call."""

from __future__ import annotations

from runtime_core.engines.calls import settle_calls
from runtime_core.engines.port import AskModel, Finish, Move, View


class React:
    """The engine of most agents. Calls of one turn run in their order; those that ask wait until the rest has run."""

    def next_move(self, view: View) -> Move:
        if not view.answered:
            return AskModel()
        waiting = settle_calls(view)
        if waiting is not None:
            return waiting
        return AskModel() if view.calls else Finish(view.text)

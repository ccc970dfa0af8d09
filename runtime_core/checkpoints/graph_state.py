"""The state of a graph: what its nodes set, kept as one small delta a node and, now and then, as a whole.

A whole is written when the deltas since the last one weigh as much as it does, so the bytes of a step do not grow with
the state, and reading it back is bounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from runtime_core.checkpoints.plain import require_plain
from runtime_core.errors import InvalidInput, StateUnusable
from runtime_core.limits import limits
from runtime_core.sanitize import canonical
from runtime_core.states import CheckpointReason
from runtime_core.values import Json

DELTA, WHOLE = CheckpointReason.NODE.value, CheckpointReason.STATE.value
_DELTAS_BETWEEN = 50
_BYTES_BETWEEN = 4_000


@dataclass(frozen=True, slots=True)
class GraphState:
    """Where a graph is: the node to run next, what the nodes before have set, and how far the last whole is behind."""

    node: str = ""
    into: str = ""
    """Under which key the next node finds what became of the calls of step `step`; empty if there were none."""
    step: int = -1
    values: Mapping[str, Json] = field(default_factory=dict)
    nth: int = -1
    whole_bytes: int = 0
    delta_bytes: int = 0

    def after(self, step: int, node: str, into: str, delta: dict[str, Json]) -> Saved:
        """The state once the node of `step` has answered, and what its checkpoint stores of that.

        InvalidInput if it is too large.
        """
        values = {**self.values, **delta}
        stored: dict[str, Json] = {"step": step, "node": node, "nth": self.nth + 1, "set": delta}
        if into:
            stored["into"] = into
        text = canonical(stored)
        grown = self.delta_bytes + len(text)
        if 0 <= self.nth < _DELTAS_BETWEEN and grown <= max(_BYTES_BETWEEN, self.whole_bytes):
            _check_size(text)
            state = GraphState(node, into, step, values, self.nth + 1, self.whole_bytes, grown)
            return Saved(state, DELTA, stored, text)
        stored |= {"nth": 0, "set": values}
        text = canonical(stored)
        _check_size(text)
        return Saved(GraphState(node, into, step, values, 0, len(text)), WHOLE, stored, text)

    def shown(self, results: Mapping[str, Json]) -> dict[str, Json]:
        """The state as a node gets it: a copy of its own, with these results in it."""
        return {key: _copied(value) for key, value in {**self.values, **results}.items()}


@dataclass(frozen=True, slots=True)
class Saved:
    """A state, and the row that keeps it: `text` is the canonical JSON of `stored`."""

    state: GraphState
    reason: str
    stored: dict[str, Json]
    text: str


def fold(rows: Iterable[Mapping[str, Any]], start: GraphState) -> GraphState:
    """The state after these rows, a whole and the deltas behind it in order; `start` if there are none.

    StateUnusable if one of them is missing.
    """
    state = start
    for number, row in enumerate(rows):
        if row["nth"] != number:
            raise StateUnusable(f"The state of step {row['step']} cannot be built: one is missing.")
        size = len(canonical(row))
        values = row["set"] if number == 0 else {**state.values, **row["set"]}
        whole = size if number == 0 else state.whole_bytes
        grown = 0 if number == 0 else state.delta_bytes + size
        state = GraphState(
            row["node"], row.get("into", ""), row["step"], values, number, whole, grown
        )
    return state


def plain(value: Mapping[str, Any], at: str) -> dict[str, Json]:
    """A copy of what a node gave; StateNotPlain names the key that JSON would not give back."""
    require_plain(value, at)
    return {key: _copied(item) for key, item in value.items()}


def _copied(value: Json) -> Json:
    if type(value) is dict:
        return {key: _copied(v) for key, v in value.items()}
    if type(value) is list:
        return [_copied(v) for v in value]
    return value


def _check_size(text: str) -> None:
    if len(text) > limits().graph_state_bytes:
        raise InvalidInput(
            f"The state has {len(text)} bytes; at most {limits().graph_state_bytes} can be kept."
        )

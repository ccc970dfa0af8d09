"""graph: a workflow whose next step is a function of the state, not of a model's answer."""

from __future__ import annotations

from runtime_core.engines.calls import settle_calls
from runtime_core.engines.nodes import GRAPHS, Graph
from runtime_core.engines.port import GiveUp, Move, RunNode, View
from runtime_core.errors import InvalidInput


class GraphEngine:
    """Runs the nodes of one graph, each after what the one before has answered; open calls come first."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._moves = {name: RunNode(name, fn) for name, fn in graph.nodes.items()}

    def next_move(self, view: View) -> Move:
        waiting = settle_calls(view)
        if waiting is not None:
            return waiting
        name = view.node or self._graph.start
        move = self._moves.get(name)
        if move is not None:
            return move
        known = ", ".join(sorted(self._moves))
        return GiveUp(
            "unknown_node",
            f"The graph {self._graph.name} has no node {name[:64]!r}; there are: {known}.",
        )


def graph_engine(name: str) -> GraphEngine:
    """The engine of that graph; InvalidInput says which there are."""
    graph = GRAPHS.get(name)
    if graph is None:
        known = ", ".join(sorted(GRAPHS)) or "none"
        raise InvalidInput(
            f"graph: {name!r} is unknown; there are: {known}. List its module in TOOL_MODULES.",
            field="graph",
        )
    if not graph.start:
        raise InvalidInput(
            f"graph: {name!r} has no start; mark one node with @node({name!r}, start=True).",
            field="graph",
        )
    return GraphEngine(graph)

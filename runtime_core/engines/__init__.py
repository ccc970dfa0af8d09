"""Engines decide what a run does next; they never execute anything and never see the database."""

from __future__ import annotations

from collections.abc import Mapping

from runtime_core.engines.compensate import Compensate
from runtime_core.engines.graph import graph_engine
from runtime_core.engines.nodes import Ask, Call, Finish, Next, node
from runtime_core.engines.port import Engine
from runtime_core.engines.react import React
from runtime_core.engines.supervisor import Supervisor
from runtime_core.errors import InvalidInput
from runtime_core.values import Json

__all__ = ["COMPENSATE", "Ask", "Call", "Engine", "Finish", "Next", "engine_of", "node"]

# Not for an agent to name: it is what runs that take back another one's effects go by.
COMPENSATE = Compensate()
_PLAIN: dict[str, Engine] = {"react": React(), "supervisor": Supervisor()}
_NAMES = ("graph", *_PLAIN)


def engine_of(definition: Mapping[str, Json]) -> Engine:
    """The engine that an agent's definition names; InvalidInput says which there are.

    Graphs are known once the modules that TOOL_MODULES lists are loaded.
    """
    name, graph = definition.get("engine", "react"), definition.get("graph")
    if name not in _NAMES:
        raise InvalidInput(
            f"engine: {name!r} is unknown; there are: {', '.join(_NAMES)}.", field="engine"
        )
    if name == "graph":
        if not graph:
            raise InvalidInput("graph: name the graph that the engine runs.", field="graph")
        return graph_engine(graph)
    if graph:
        raise InvalidInput("graph: only the engine `graph` runs one.", field="graph")
    return _PLAIN[name]

"""What people write a graph with: `@node` functions, and the closed set of what a node may answer.

A node is plain code from the state to its answer. It touches nothing outside: effects are tools, which it asks for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from runtime_core.values import Json

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


@dataclass(frozen=True, slots=True)
class Next:
    """Go on with the node `to`; `set` replaces these keys of the state."""

    to: str
    set: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Call:
    """Call a tool of the agent, under its permissions; what became of it is in the state as `into` for the node `then`.

    That is `{"status": "succeeded" | "failed" | "rejected" | …, "value": the result or what is told instead}`.
    """

    tool: str
    args: Mapping[str, Json]
    then: str
    into: str = "result"
    set: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask a person; the answer is in the state as `into`, in the shape of a `Call`'s, for the node `then`."""

    question: str
    then: str
    choices: tuple[str, ...] = ()
    into: str = "answer"
    set: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finish:
    """The run is complete with this answer."""

    output: str
    set: Mapping[str, Json] = field(default_factory=dict)


Answer = Next | Call | Ask | Finish
State = dict[str, Any]
Node = Callable[[State], Answer]


@dataclass(slots=True)
class Graph:
    """Named nodes, and the one that a run begins with."""

    name: str
    nodes: dict[str, Node] = field(default_factory=dict)
    start: str = ""


GRAPHS: dict[str, Graph] = {}


def node(graph: str, *, name: str | None = None, start: bool = False) -> Callable[[Node], Node]:
    """Declare the function as a node of `graph`, under its own name; a run begins with the one that is its `start`."""

    def declare(fn: Node) -> Node:
        called = name or fn.__name__
        for word in (graph, called):
            if not _NAME.fullmatch(word):
                raise ValueError(f"node {word!r}: a name is a-z, 0-9 and _, at most 64 long")
        _add(GRAPHS.setdefault(graph, Graph(graph)), called, fn, start)
        return fn

    return declare


def _add(graph: Graph, name: str, fn: Node, start: bool) -> None:
    known = graph.nodes.get(name)
    if known is not None and (known.__module__, known.__qualname__) != (
        fn.__module__,
        fn.__qualname__,
    ):
        raise ValueError(f"graph {graph.name}: two nodes are named {name!r}")
    if start and graph.start not in ("", name):
        raise ValueError(f"graph {graph.name}: both {graph.start!r} and {name!r} are its start")
    graph.nodes[name] = fn
    if start:
        graph.start = name

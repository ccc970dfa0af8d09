"""Spans as a tree, whatever order they came in: pure functions of values, every span once."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

DEPTH_SHOWN = 8


class Timed(Protocol):
    """What the tree needs to know of a span."""

    id: uuid.UUID
    parent_id: uuid.UUID | None
    kind: str
    status: str
    epoch: int
    started_at: dt.datetime
    ended_at: dt.datetime | None
    input_tokens: int
    output_tokens: int
    cost_microusd: int


@dataclass(slots=True)
class Node:
    """One span at its place.

    `mark`: "", "orphan" (its parent is not there) or "cycle" (it is its own ancestor).
    """

    span: Timed
    depth: int
    mark: str = ""
    children: int = 0
    tokens: int = 0
    cost_microusd: int = 0

    @property
    def shown_depth(self) -> int:
        """The depth it is indented by."""
        return min(self.depth, DEPTH_SHOWN)

    @property
    def backwards(self) -> bool:
        """True if it ended before it started: clocks of two machines disagree."""
        return self.span.ended_at is not None and self.span.ended_at < self.span.started_at


def lay_out(spans: Iterable[Timed]) -> list[Node]:
    """Depth first, by start time; what hangs on nothing comes last, marked."""
    ordered = sorted({s.id: s for s in spans}.values(), key=lambda s: (s.started_at, s.id.int))
    known = {span.id for span in ordered}
    below: dict[uuid.UUID | None, list[Timed]] = {}
    for span in ordered:
        below.setdefault(span.parent_id, []).append(span)
    done: set[uuid.UUID] = set()
    nodes: list[Node] = []
    for root in below.get(None, []):
        nodes += _subtree(root, below, done)
    orphans = [s for s in ordered if s.parent_id is not None and s.parent_id not in known]
    for orphan in orphans:
        nodes += _subtree(orphan, below, done, "orphan")
    # What no root and no orphan leads to hangs on itself.
    for span in ordered:
        if span.id not in done:
            nodes += _subtree(span, below, done, "cycle")
    return nodes


def _subtree(
    top: Timed, below: dict[uuid.UUID | None, list[Timed]], done: set[uuid.UUID], mark: str = ""
) -> list[Node]:
    nodes: list[Node] = []
    todo = [(top, 0, mark)]
    while todo:
        span, depth, mark_of = todo.pop()
        if span.id in done:
            continue
        done.add(span.id)
        children = below.get(span.id, [])
        nodes.append(Node(span, depth, mark_of, len(children)))
        todo.extend((child, depth + 1, "") for child in reversed(children))
    _add_up(nodes)
    return nodes


def _add_up(nodes: Sequence[Node]) -> None:
    """Usage of each node: its own, if it is a model request, and all below it."""
    path: list[Node] = []
    for node in nodes:
        while path and path[-1].depth >= node.depth:
            path.pop()
        path.append(node)
        if node.span.kind == "llm":
            for holder in path:
                holder.tokens += node.span.input_tokens + node.span.output_tokens
                holder.cost_microusd += node.span.cost_microusd

"""Many siblings of a tree as few: the first and the last of them, what must be seen, and how many others there are."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from traces.shown.span_tree import DEPTH_SHOWN, Node

MOST = 50
FIRST = 25
LAST = 10


@dataclass(slots=True)
class More:
    """Siblings that are left out, with all below them."""

    depth: int
    started_at: dt.datetime
    siblings: int = 0
    spans: int = 0

    @property
    def shown_depth(self) -> int:
        """The depth it is indented by."""
        return min(self.depth, DEPTH_SHOWN)


def folded(nodes: Sequence[Node], must_show: Callable[[Node], bool]) -> list[Node | More]:
    """The nodes in their order; more than fifty siblings are cut in the middle, never around what must be seen."""
    needed = _needed(nodes, must_show)
    shown: list[Node | More] = []
    seen, sizes = [0], [sum(node.depth == 0 for node in nodes)]
    cut: int | None = None
    for node, is_needed in zip(nodes, needed, strict=True):
        if cut is not None and node.depth > cut:
            _left_out(shown, node).spans += 1
            continue
        cut = None
        del seen[node.depth + 1 :], sizes[node.depth + 1 :]
        place = seen[node.depth]
        seen[node.depth] += 1
        if _is_in_the_middle(place, sizes[node.depth]) and not is_needed:
            more = _left_out(shown, node)
            more.siblings += 1
            more.spans += 1
            cut = node.depth
        else:
            shown.append(node)
        seen.append(0)
        sizes.append(node.children)
    return shown


def _is_in_the_middle(place: int, of: int) -> bool:
    return of > MOST and FIRST <= place < of - LAST


def _left_out(shown: list[Node | More], node: Node) -> More:
    last = shown[-1] if shown else None
    if isinstance(last, More) and last.depth <= node.depth:
        return last
    more = More(node.depth, node.span.started_at)
    shown.append(more)
    return more


def _needed(nodes: Sequence[Node], must_show: Callable[[Node], bool]) -> list[bool]:
    """For each node whether it, or anything below it, must be seen."""
    needed = [False] * len(nodes)
    below: dict[int, bool] = {}
    for index in range(len(nodes) - 1, -1, -1):
        node = nodes[index]
        needed[index] = below.pop(node.depth + 1, False) or must_show(node)
        below[node.depth] = below.get(node.depth, False) or needed[index]
    return needed

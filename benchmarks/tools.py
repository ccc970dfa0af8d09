"""The tools of the measured agents."""

from __future__ import annotations

from typing import Any

from runtime_core.engines import Finish, Next, node
from runtime_core.tools import ToolContext, tool

ANSWER = ("quiet amber river stone " * 9)[:200]


@tool(risk="low", effect="read", timeout=60)
def do_nothing(ctx: ToolContext, number: int, words: str) -> str:
    """Return 200 bytes."""
    return ANSWER


@tool(risk="high", effect="idempotent", timeout=60)
def do_if_agreed(ctx: ToolContext, number: int) -> str:
    """Do nothing, after somebody has agreed to it."""
    return "done"


@node("chain20", start=True)
def count(state: dict[str, Any]) -> Next | Finish:
    """One of 20 steps that cost nothing by themselves: the next number, and 100 bytes."""
    number = state.get("n", 0) + 1
    changed = {"n": number, "last": "x" * 100}
    return Finish(str(number), changed) if number == 20 else Next("count", changed)

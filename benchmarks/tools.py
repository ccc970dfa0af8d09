"""The tools of the measured agents."""

from __future__ import annotations

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

"""The tools of the measured agents."""

from __future__ import annotations

import random
import time
from typing import Any

from runtime_core.engines import Finish, Next, node
from runtime_core.tools import ToolContext, tool

_WORDS = (
    "amber", "river", "stone", "quiet", "north", "lamp", "winter", "field", "copper", "glass", "under",
    "orange", "seven", "cloud", "match", "paper", "silver", "thread", "open", "candle", "garden",
)  # fmt: skip


@tool(risk="low", effect="read", timeout=60)
def do_nothing(ctx: ToolContext, number: int, words: str) -> str:
    """Return 200 bytes of words, others for each number."""
    choose = random.Random(number)
    return " ".join(choose.choice(_WORDS) for _ in range(45))[:200]


@tool(risk="high", effect="idempotent", timeout=60)
def do_if_agreed(ctx: ToolContext, number: int) -> str:
    """Do nothing, after somebody has agreed to it, and say when that was."""
    return repr(time.time())


@node("chain20", start=True)
def count(state: dict[str, Any]) -> Next | Finish:
    """One of 20 steps that cost nothing by themselves: the next number, and 100 bytes."""
    number = state.get("n", 0) + 1
    changed = {"n": number, "last": "x" * 100}
    return Finish(str(number), changed) if number == 20 else Next("count", changed)


@node("stamp", start=True)
def now(state: dict[str, Any]) -> Finish:
    """Say when the first step of the run is taken."""
    return Finish(repr(time.time()))

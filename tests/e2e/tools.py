"""Tools of the agents in these tests; the running product finds them by TOOL_MODULES."""

from __future__ import annotations

import time
from typing import Annotated

from pydantic import Field

from runtime_core.errors import ToolFailed
from runtime_core.tools import ToolContext, tool
from tests.e2e.texts import SPOKEN


@tool(risk="medium", effect="idempotent", timeout=20)
def post_notice(
    ctx: ToolContext, text: Annotated[str, Field(min_length=1)], copies: int = 1
) -> str:
    """Put a notice on the board."""
    return f"posted {copies} of: {text}"


@tool(risk="critical", effect="once", timeout=20)
def erase_board(ctx: ToolContext, board: str) -> str:
    """Take every notice off a board, for good."""
    return f"erased {board}"


@tool(risk="low", effect="read", timeout=20)
def read_board(ctx: ToolContext, at: str) -> dict[str, str]:
    """Read what is on the board."""
    return {"at": at, "says": "nothing new"}


@tool(risk="low", effect="read", timeout=60)
def watch_board(ctx: ToolContext) -> str:
    """Watch the board until somebody stops it."""
    while True:
        ctx.check()
        time.sleep(0.02)


@tool(risk="low", effect="read", timeout=20)
def recite(ctx: ToolContext, what: str) -> dict[str, str]:
    """Say a text that these tests know by name."""
    return {"said": SPOKEN[what]}


@tool(risk="low", effect="read", timeout=20)
def stumble(ctx: ToolContext, what: str) -> str:
    """Fail with a text that these tests know by name."""
    try:
        raise ValueError(SPOKEN[what])
    except ValueError as inner:
        if what.startswith("told"):
            raise ToolFailed(SPOKEN[what]) from inner
        raise RuntimeError(f"HTTPError for url https://h.invalid/?key={SPOKEN[what]}") from inner


@tool(risk="low", effect="read", timeout=20)
def murmur(ctx: ToolContext, what: str) -> str:
    """Say a text that these tests know by name, a piece at a time, while it works."""
    for at in range(0, len(SPOKEN[what]), 7):
        ctx.progress(SPOKEN[what][at : at + 7])
    ctx.progress(SPOKEN[what])
    try:
        raise ValueError(SPOKEN["planted inner"])
    except ValueError as inner:
        raise ToolFailed("it did not work") from inner

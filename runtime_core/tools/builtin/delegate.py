"""Work for another agent as a tool: its result is the answer of the run that the call starts."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from runtime_core.errors import ToolFailed
from runtime_core.tools.context import ToolContext
from runtime_core.tools.registry import tool

DELEGATE = "delegate"
AgentName = Annotated[str, Field(min_length=1, max_length=60)]
Task = Annotated[str, Field(min_length=1, max_length=20_000)]


@tool(risk="low", effect="idempotent", delegates=True, name=DELEGATE)
def delegate(
    ctx: ToolContext,
    agent: Annotated[AgentName, "The agent's name."],
    task: Annotated[Task, "The whole task; the agent sees nothing else of this conversation."],
) -> str:
    """Hand a task to another agent and wait for its answer. Several calls of one turn run side by side."""
    raise ToolFailed("a delegated task is a run of its own; nothing of it can be run here")

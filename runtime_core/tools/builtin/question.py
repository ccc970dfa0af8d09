"""A question to a person as a tool: the answer comes from the interrupt that it opens."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from runtime_core.errors import ToolFailed
from runtime_core.tools.context import ToolContext
from runtime_core.tools.ledger import NO_CALL_OF_THE_MODEL
from runtime_core.tools.registry import tool

MODEL_FAILED = NO_CALL_OF_THE_MODEL
TRY_AGAIN = "Try again"
USE = "Use "
"""What the answer to use another model begins with; the model's name follows."""
Question = Annotated[str, Field(min_length=1, max_length=4_000)]
Choices = Annotated[list[str], Field(min_length=1, max_length=20)]


@tool(risk="low", effect="read", asks=True)
def ask_human(
    ctx: ToolContext,
    question: Annotated[Question, "What you need to know, with what a person needs to answer it."],
    choices: Annotated[Choices | None, "The possible answers, if there are only a few."] = None,
) -> str:
    """Ask a person a question and wait for the answer, however long it takes."""
    raise ToolFailed("a question is answered by a person; nothing of it can be run")


@tool(risk="low", effect="read", asks=True, name=MODEL_FAILED)
def model_failed(
    ctx: ToolContext,
    question: Annotated[Question, "What failed."],
    choices: Annotated[Choices, "How the run can go on."],
) -> str:
    """Ask a person how to go on where the model fails. The runtime's own: no agent is offered it."""
    raise ToolFailed("a question is answered by a person; nothing of it can be run")

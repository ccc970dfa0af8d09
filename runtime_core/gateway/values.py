"""What goes into the gateway and what comes out of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from pydantic_ai.messages import ModelMessage, ModelResponse

from runtime_core.errors import InterlockError
from runtime_core.values import ProposedCall, ToolSpec, Usage


@dataclass(frozen=True, slots=True)
class ModelCall:
    """Everything one request needs.

    `model` is in pydantic-ai's notation, e.g. `openai-chat:gpt-5-mini`; without it the setting
    INTERLOCK_MODEL is used, and without that `script`, the path of a YAML file below BASE_DIR.
    """

    model: str | None
    script: str | None
    instructions: str
    messages: tuple[ModelMessage, ...]
    tools: tuple[ToolSpec, ...] = ()
    plain_schemas: bool = False
    """Show the model the tools' schemas without what only some providers know."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer's text. `last`: the whole rest of the answer is here and follows at once."""

    text: str
    last: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """A piece of the model's reasoning, where the provider shows it."""

    text: str


@dataclass(frozen=True, slots=True)
class Answer:
    """One complete response. With `finish_reason` "length" it was cut off, and `calls` is empty."""

    response: ModelResponse
    text: str
    calls: tuple[ProposedCall, ...]
    usage: Usage
    model: str
    provider: str
    finish_reason: str
    first_token_seconds: float | None


class StreamStopped(InterlockError):
    """The model's stream was stopped. `data` holds the partial `text` and the `usage` so far."""

    code = "stream_stopped"

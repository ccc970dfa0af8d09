"""The bounds of one request: how long each silence and the whole may be, how large the answer."""

from __future__ import annotations

import asyncio

from pydantic_ai.messages import (
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    ToolCallPart,
    ToolCallPartDelta,
)

from runtime_core.errors import ModelTimeout
from runtime_core.limits import limits

ARGS_FACTOR = 10
"""How many times `tool_args_bytes` the arguments of all calls of a response may have together."""


class Patience:
    """Times a stream by what it means: until the first token, between tokens, and all of it."""

    def __init__(self) -> None:
        self._limits = limits()
        self._phase = "first token"
        self._seconds = self._limits.model_first_token_seconds
        self._loop = asyncio.get_running_loop()
        self._end = self._loop.time() + self._limits.model_total_seconds
        self._when = self._at(self._seconds)
        self.timer = asyncio.timeout_at(self._when)

    def heard(self) -> None:
        """Something came: from now on the time between tokens counts."""
        self._phase = "between tokens"
        self._seconds = self._limits.model_between_tokens_seconds
        self._move(self._at(self._seconds))

    def wait_for_reader(self) -> None:
        """Our own reader is slow: that is not the provider's silence."""
        self._move(self._end)

    def explain(self, error: Exception) -> Exception:
        """The error that says which time was over; `error` itself if none was."""
        if not self.timer.expired():
            return error
        if self._loop.time() >= self._end:
            seconds = self._limits.model_total_seconds
            return ModelTimeout(f"The model did not finish within {seconds:g} s.", phase="total")
        return ModelTimeout(
            f"The model sent nothing for {self._seconds:g} s ({self._phase}).",
            phase=self._phase.replace(" ", "_"),
        )

    def _at(self, seconds: float) -> float:
        return min(self._end, self._loop.time() + seconds)

    def _move(self, when: float) -> None:
        # Moving it costs more than reading a token, so it is not moved for a hundredth of its time.
        if abs(when - self._when) > self._seconds / 100 and not self.timer.expired():
            self.timer.reschedule(when)
            self._when = when


class Size:
    """How much a response has grown to."""

    def __init__(self) -> None:
        self._text = 0
        self._args = 0

    def over(self, event: ModelResponseStreamEvent, text: str) -> bool:
        """Add what the event brings; True once that is more than the limits allow."""
        self._text += len(text.encode())
        self._args += _args_length(event)
        most_args = ARGS_FACTOR * limits().tool_args_bytes
        return self._text > limits().model_text_bytes or self._args > most_args


def _args_length(event: ModelResponseStreamEvent) -> int:
    match event:
        case PartStartEvent(part=ToolCallPart(args=args)):
            return len(str(args or ""))
        case PartDeltaEvent(delta=ToolCallPartDelta(args_delta=args)):
            return len(str(args or ""))
    return 0

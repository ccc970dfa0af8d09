"""The loop's side of a request: opens the model's stream, times it, bounds it and hands on what comes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import (
    InstructionPart,
    ModelMessage,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from runtime_core.clock import monotonic
from runtime_core.errors import InterlockError, ModelTimeout, ModelUnavailable
from runtime_core.gateway import providers
from runtime_core.gateway.answer import complete
from runtime_core.gateway.errors import named
from runtime_core.gateway.loop import LoopThread, timeouts
from runtime_core.gateway.messages import sendable
from runtime_core.gateway.pipe import Pipe
from runtime_core.gateway.usage import usage_of
from runtime_core.gateway.values import Answer, ModelCall, TextDelta, ThinkingDelta
from runtime_core.limits import limits
from runtime_core.sanitize import storable_text
from runtime_core.values import ToolSpec, Usage

logger = logging.getLogger(__name__)

SHUT_DOWN = "This process's model gateway was shut down during the request."

_ARGS_FACTOR = 10
"""How many times `tool_args_bytes` the arguments of all calls of one response may have together."""


class Request:
    """One request in the making. `run` belongs to the loop; the rest may be read once `run` has ended."""

    def __init__(
        self, call: ModelCall, pipe: Pipe[TextDelta | ThinkingDelta | Answer], loop: LoopThread
    ) -> None:
        self._call = call
        self._pipe = pipe
        self._loop = loop
        self._messages: list[ModelMessage] = []
        self._stream: StreamedResponse | None = None
        self._error: InterlockError | None = None
        self._said: list[str] = []
        self._size = _Size()
        self._first_token_seconds: float | None = None
        self.ended = False

    async def run(self) -> None:
        """Ask the model; ends with an `Answer` in the pipe, or with an error that `raise_if_failed` raises."""
        try:
            await self._pipe.put(await self._ask())
        except asyncio.CancelledError:
            self._error = ModelUnavailable(SHUT_DOWN)  # read only if nobody asked for the stop
            raise
        except Exception as error:
            if not isinstance(error, InterlockError):
                logger.info("model request failed: %s", type(error).__name__)
            self._error = named(error, heard=self._stream is not None)
            self._error.data.setdefault("text", self.text)
            self._error.data.setdefault("usage", self.usage())
        finally:
            self.ended = True
            self._pipe.end()

    @property
    def text(self) -> str:
        """What the model has said so far."""
        return "".join(self._said)

    def usage(self) -> Usage:
        """What the request has used so far; estimated where the provider has not said."""
        if self._stream is None:
            return Usage()
        return usage_of(self._partial(), self._messages)

    def raise_if_failed(self) -> None:
        if self._error is not None:
            raise self._error

    async def _ask(self) -> Answer:
        started = monotonic()
        model = providers.model_for(self._call, self._loop)
        self._messages = sendable(self._call.messages)
        patience = _Patience()
        try:
            async with (
                patience,
                model_request_stream(
                    model,
                    self._messages,
                    model_settings=ModelSettings(timeout=timeouts(), max_retries=0),
                    model_request_parameters=_parameters(self._call.instructions, self._call.tools),
                    instrument=False,
                ) as stream,
            ):
                self._stream = stream
                cut = await self._follow(stream, patience, started)
        except Exception as error:
            raise patience.explain(error) from None
        return self._answer(model, self._partial(), cut)

    async def _follow(self, stream: StreamedResponse, patience: _Patience, started: float) -> bool:
        """Hand on each delta; True if the response grew over its bound and was cut there."""
        async for event in stream:
            patience.heard()
            if self._first_token_seconds is None:
                self._first_token_seconds = monotonic() - started
            delta = _delta(event)
            if self._size.over(event, delta):
                return True
            if delta is not None and delta.text:
                await self._hand_on(delta, patience)
        return False

    async def _hand_on(self, delta: TextDelta | ThinkingDelta, patience: _Patience) -> None:
        if isinstance(delta, TextDelta):
            self._said.append(delta.text)
        if self._pipe.full:
            patience.wait_for_reader()
        await self._pipe.put(delta)
        patience.heard()

    def _answer(self, model: Model, response: ModelResponse, cut: bool) -> Answer:
        return complete(
            response,
            cut=cut,
            history=self._messages,
            usage=usage_of(response, self._messages),
            model=response.model_name or model.model_name,
            provider=response.provider_name or model.system,
            first_token_seconds=self._first_token_seconds,
        )

    def _partial(self) -> ModelResponse:
        assert self._stream is not None
        return self._stream.get()


class _Patience:
    """Times a stream by what it means: until the first token, between tokens, and all of it."""

    def __init__(self) -> None:
        self._limits = limits()
        self._phase = "first token"

    async def __aenter__(self) -> None:
        self._loop = asyncio.get_running_loop()
        now = self._loop.time()
        self._end = now + self._limits.model_total_seconds
        self._timer = asyncio.timeout_at(
            min(self._end, now + self._limits.model_first_token_seconds)
        )
        await self._timer.__aenter__()

    async def __aexit__(self, *exc: object) -> bool | None:
        return await self._timer.__aexit__(*exc)  # type: ignore[arg-type]

    def heard(self) -> None:
        """Something came: from now on the time between tokens counts."""
        self._phase = "between tokens"
        self._move(self._loop.time() + self._limits.model_between_tokens_seconds)

    def wait_for_reader(self) -> None:
        """Our own reader is slow: that is not the provider's silence."""
        self._move(self._end)

    def explain(self, error: Exception) -> Exception:
        """The error that says which time was over; `error` itself if none was."""
        if not self._timer.expired():
            return error
        if self._loop.time() >= self._end:
            return ModelTimeout(
                f"The model did not finish within {self._limits.model_total_seconds:g} s.",
                phase="total",
            )
        seconds = (
            self._limits.model_first_token_seconds
            if self._phase == "first token"
            else self._limits.model_between_tokens_seconds
        )
        return ModelTimeout(
            f"The model sent nothing for {seconds:g} s ({self._phase}).",
            phase=self._phase.replace(" ", "_"),
        )

    def _move(self, when: float) -> None:
        if not self._timer.expired():
            self._timer.reschedule(min(self._end, when))


class _Size:
    """How much a response has grown to."""

    def __init__(self) -> None:
        self._text = 0
        self._args = 0

    def over(
        self, event: ModelResponseStreamEvent, delta: TextDelta | ThinkingDelta | None
    ) -> bool:
        """Add what the event brings; True once that is more than the limits allow."""
        if delta is not None:
            self._text += len(delta.text.encode())
        else:
            self._args += _args_bytes(event)
        return (
            self._text > limits().model_text_bytes
            or self._args > _ARGS_FACTOR * limits().tool_args_bytes
        )


def _args_bytes(event: ModelResponseStreamEvent) -> int:
    match event:
        case PartStartEvent(part=ToolCallPart(args=args)):
            return len(str(args or ""))
        case PartDeltaEvent(delta=ToolCallPartDelta(args_delta=args)):
            return len(str(args or ""))
    return 0


def _delta(event: ModelResponseStreamEvent) -> TextDelta | ThinkingDelta | None:
    match event:
        case (
            PartStartEvent(part=TextPart(content=text))
            | PartDeltaEvent(delta=TextPartDelta(content_delta=text))
        ):
            return TextDelta(storable_text(text))
        case (
            PartStartEvent(part=ThinkingPart(content=text))
            | PartDeltaEvent(delta=ThinkingPartDelta(content_delta=text))
        ):
            return ThinkingDelta(storable_text(text or ""))
    return None


def _parameters(instructions: str, tools: Sequence[ToolSpec]) -> ModelRequestParameters:
    return ModelRequestParameters(
        function_tools=[
            ToolDefinition(
                name=tool.name,
                description=tool.description,
                parameters_json_schema=dict(tool.schema),
            )
            for tool in tools
        ],
        instruction_parts=[InstructionPart(content=instructions)] if instructions else None,
    )

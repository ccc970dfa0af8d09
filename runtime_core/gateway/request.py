"""The loop's side of a request: opens the model's stream, bounds it and hands on what comes."""

from __future__ import annotations

import asyncio
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
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from runtime_core.clock import monotonic
from runtime_core.errors import InterlockError, ModelUnavailable
from runtime_core.gateway import providers
from runtime_core.gateway.answer import complete
from runtime_core.gateway.bounds import Patience, Size
from runtime_core.gateway.errors import named
from runtime_core.gateway.loop import LoopThread, timeouts
from runtime_core.gateway.messages import sendable
from runtime_core.gateway.pipe import Pipe
from runtime_core.gateway.schemas import plain
from runtime_core.gateway.usage import usage_of
from runtime_core.gateway.values import Answer, ModelCall, TextDelta, ThinkingDelta
from runtime_core.sanitize import storable_text
from runtime_core.values import ToolSpec, Usage

SHUT_DOWN = "This process's model gateway was shut down during the request."


class Request:
    """One request in the making. `run` belongs to the loop; the rest is read once it has ended."""

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
        self._size = Size()
        self._patience: Patience | None = None
        self._first_token_seconds: float | None = None
        self.ended = False

    async def run(self) -> None:
        """Ask the model; puts an `Answer` in the pipe or keeps what `raise_if_failed` raises."""
        try:
            await self._pipe.put(await self._ask())
        except asyncio.CancelledError:
            self._error = ModelUnavailable(SHUT_DOWN)  # read only if nobody asked for the stop
            raise
        except Exception as error:  # noqa: BLE001 - whatever failed, the caller gets it by its name
            self._error = self._named(error)
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
        return usage_of(self._stream.get(), self._messages)

    def raise_if_failed(self) -> None:
        if self._error is not None:
            raise self._error

    async def _ask(self) -> Answer:
        started = monotonic()
        model = providers.model_for(self._call, self._loop)
        self._messages = sendable(self._call.messages)
        opening = model_request_stream(
            model,
            self._messages,
            model_settings=_settings(),
            model_request_parameters=_parameters(
                self._call.instructions, self._call.tools, self._call.plain_schemas
            ),
            instrument=False,
        )
        self._patience = Patience()
        async with self._patience.timer, opening as stream:
            self._stream = stream
            cut = await self._follow(stream, self._patience, started)
        return self._answer(model, stream.get(), cut)

    async def _follow(self, stream: StreamedResponse, patience: Patience, started: float) -> bool:
        """Hand on each delta; True if the response grew over its bound and was cut there."""
        async for event in stream:
            patience.heard()
            if self._first_token_seconds is None:
                self._first_token_seconds = monotonic() - started
            delta = _delta(event)
            if self._size.over(event, delta.text if delta else ""):
                return True
            if delta is not None and delta.text:
                await self._hand_on(delta, patience)
        return False

    async def _hand_on(self, delta: TextDelta | ThinkingDelta, patience: Patience) -> None:
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

    def _named(self, error: Exception) -> InterlockError:
        if self._patience is not None:
            error = self._patience.explain(error)
        found = named(error, heard=self._stream is not None)
        found.data.setdefault("text", self.text)
        found.data.setdefault("usage", self.usage())
        return found


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


def _settings() -> ModelSettings:
    # Retrying is the loop's: it knows the run's budget and writes down each attempt.
    return ModelSettings(timeout=timeouts(), max_retries=0)  # type: ignore[typeddict-item]


def _parameters(
    instructions: str, tools: Sequence[ToolSpec], plain_schemas: bool
) -> ModelRequestParameters:
    return ModelRequestParameters(
        function_tools=[
            ToolDefinition(
                name=tool.name,
                description=tool.description,
                parameters_json_schema=plain(tool.schema) if plain_schemas else dict(tool.schema),
                # Strict makes pydantic-ai add to the schema what such a provider does not know.
                strict=False if plain_schemas else None,
            )
            for tool in tools
        ],
        instruction_parts=[InstructionPart(content=instructions)] if instructions else None,
    )

"""A model that plays a script: deterministic, streamed like a real one, and as forgetful.

The turn of a response is written in the response itself (`provider_details`), so that the next one
follows from the conversation alone: a restart, another worker or a later run of the thread changes
nothing. A new user prompt starts at the first turn again.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    ModelResponseStreamEvent,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from runtime_core.clock import now
from runtime_core.errors import ScriptEnded
from runtime_core.gateway.script import Failure, PlannedCall, Rule, Script, Turn
from runtime_core.gateway.usage import estimated_tokens
from runtime_core.values import Json

PROVIDER = "script"
_ARGS_CHUNK_CHARS = 1_000
_COUNTED_FAILURES = 10_000
_PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}")


class ScriptedModel(Model[Any]):
    """Plays `script` through pydantic-ai's own model interface."""

    def __init__(self, script: Script) -> None:
        super().__init__()
        self._script = script

    @property
    def model_name(self) -> str:
        return f"script:{self._script.name}"

    @property
    def system(self) -> str:
        return PROVIDER

    @property
    def provider(self) -> None:
        return None

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        async with self.request_stream(
            messages, model_settings, model_request_parameters
        ) as stream:
            async for _ in stream:
                pass
            return stream.get()

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: Any = None,
    ) -> AsyncIterator[StreamedResponse]:
        yield ScriptedStream(
            model_request_parameters=model_request_parameters,
            _script=self._script,
            _scene=scene_of(self._script, messages),
        )


@dataclass(frozen=True, slots=True)
class Scene:
    """A turn in its conversation, with an id that no other response of the conversation has."""

    turn: Turn
    id: str
    values: Mapping[str, str]
    sent_tokens: int
    asked_at: str

    def filled(self, value: Json) -> Json:
        """`value` with its placeholders replaced; those that name nothing stay as they are."""
        match value:
            case str():
                return _PLACEHOLDER.sub(lambda match: self.values.get(match[1], match[0]), value)
            case dict():
                return {key: self.filled(item) for key, item in value.items()}
            case list():
                return [self.filled(item) for item in value]
        return value

    def raise_planned(self) -> None:
        """Raise the turn's error, where it plans one for now."""
        _raise_planned(self.turn.error, (self.id, self.asked_at))

    def used(self, parts: Sequence[ModelResponsePart]) -> RequestUsage:
        """What the turn says that it used, else an estimate."""
        planned = self.turn.usage
        if planned is not None:
            return RequestUsage(input_tokens=planned[0], output_tokens=planned[1])
        said = ModelResponse(parts=[*parts])
        return RequestUsage(
            input_tokens=self.sent_tokens, output_tokens=estimated_tokens([said]) + 1
        )

    def args_text(self, call: PlannedCall) -> str:
        if call.raw_args is not None:
            return str(self.filled(call.raw_args))
        return json.dumps(self.filled(call.args), ensure_ascii=False)


@dataclass
class ScriptedStream(StreamedResponse):
    """One turn, streamed in chunks with the script's pauses."""

    _script: Script
    _scene: Scene
    _timestamp: datetime = field(default_factory=now)

    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        scene, turn = self._scene, self._scene.turn
        self.provider_response_id = scene.id
        self.provider_details = {"script": self._script.name, "turn": turn.id}
        async for text in self._paced(str(scene.filled(turn.text)), self._script.chunk_chars):
            for event in self._parts_manager.handle_text_delta(vendor_part_id="text", content=text):
                yield event
        scene.raise_planned()
        for number, call in enumerate(turn.calls):
            yield self._parts_manager.handle_tool_call_part(
                vendor_part_id=number,
                tool_name=call.tool,
                args="",
                tool_call_id=f"call_{scene.id}_{number}",
            )
            async for piece in self._paced(scene.args_text(call), _ARGS_CHUNK_CHARS):
                for event in self._parts_manager.handle_tool_call_delta_events(
                    vendor_part_id=number, args=piece
                ):
                    yield event
        self.finish_reason = "tool_call" if turn.calls else "stop"
        self._usage = scene.used(self._parts_manager.get_parts())

    async def close_stream(self) -> None:
        """There is no connection to close."""

    @property
    def model_name(self) -> str:
        return f"script:{self._script.name}"

    @property
    def provider_name(self) -> str:
        return PROVIDER

    @property
    def provider_url(self) -> None:
        return None

    @property
    def timestamp(self) -> datetime:
        return self._timestamp

    async def _paced(self, text: str, size: int) -> AsyncIterator[str]:
        for start in range(0, len(text), size):
            if self._script.chunk_ms:
                await asyncio.sleep(self._script.chunk_ms / 1000)
            yield text[start : start + size]


def scene_of(script: Script, messages: Sequence[ModelMessage]) -> Scene:
    start = _last_prompt(messages)
    since = messages[start:]
    turn = _turn(script, since)
    before = next((m for m in reversed(messages) if isinstance(m, ModelResponse)), None)
    seed = [script.name, turn.id, len(messages), (before and before.provider_response_id) or ""]
    text = _prompt_text(messages[start]) if start < len(messages) else ""
    return Scene(
        turn=turn,
        id=hashlib.sha256(json.dumps(seed).encode()).hexdigest()[:16],
        values=_values(script, text),
        sent_tokens=estimated_tokens(messages),
        asked_at=str(messages[start].timestamp) if messages else "",
    )


def _turn(script: Script, since: Sequence[ModelMessage]) -> Turn:
    """The turn that follows the messages since the user's prompt."""
    said = [i for i, message in enumerate(since) if isinstance(message, ModelResponse)]
    if not said:
        return script.turns[0]
    last = since[said[-1]]
    details = getattr(last, "provider_details", None) or {}
    position = script.position(str(details.get("turn")))
    if position is None:
        position = len(said) - 1  # another model said it, or the script was changed: count instead
    else:
        results = [part for message in since[said[-1] :] for part in _results(message)]
        for rule in script.turns[position].next:
            if _fits(rule, results) and (target := script.position(rule.turn)) is not None:
                return script.turns[target]
    if position + 1 >= len(script.turns):
        raise ScriptEnded(f"The script {script.name} has no turn after number {position + 1}.")
    return script.turns[position + 1]


def _fits(rule: Rule, results: Sequence[ToolReturnPart]) -> bool:
    if rule.tool is rule.outcome is rule.contains is None:
        return True
    return any(
        rule.tool in (None, part.tool_name)
        and rule.outcome in (None, part.outcome)
        and (rule.contains is None or rule.contains in _content_text(part))
        for part in results
    )


def _content_text(part: ToolReturnPart) -> str:
    if isinstance(part.content, str):
        return part.content
    # A text inside a structured result is to be found as the tool wrote it, not as JSON escapes it.
    return "\n".join(
        [json.dumps(part.content, ensure_ascii=False, default=str), *_strings(part.content)]
    )


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)


def _results(message: ModelMessage) -> list[ToolReturnPart]:
    return [part for part in message.parts if isinstance(part, ToolReturnPart)]


def _last_prompt(messages: Sequence[ModelMessage]) -> int:
    """The place of the last message with a user's prompt; 0 if there is none."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, ModelRequest) and any(
            isinstance(part, UserPromptPart) for part in message.parts
        ):
            return index
    return 0


def _prompt_text(message: ModelMessage) -> str:
    return "\n".join(
        part.content
        for part in message.parts
        if isinstance(part, UserPromptPart) and isinstance(part.content, str)
    )


def _values(script: Script, text: str) -> dict[str, str]:
    values = {}
    for name, pattern in script.vars.items():
        match = pattern.search(text)
        values[name] = "" if match is None else (match[1] or "") if pattern.groups else match[0]
    return {**values, "input": text}


_raised: OrderedDict[tuple[str, str], int] = OrderedDict()
_raised_guard = threading.Lock()


def _raise_planned(failure: Failure | None, place: tuple[str, str]) -> None:
    """Raise the turn's error, unless this process did so `times` times at this place already."""
    if failure is None:
        return
    with _raised_guard:
        count = _raised.pop(place, 0)
        _raised[place] = count + 1
        while len(_raised) > _COUNTED_FAILURES:
            _raised.popitem(last=False)
    if failure.times is None or count < failure.times:
        data = {} if failure.retry_after is None else {"retry_after": failure.retry_after}
        raise failure.kind(failure.message, **data)

"""A script without pauses, played on the thread that asks: no loop, no hand-over, no stream to take apart."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

from runtime_core.clock import monotonic, now
from runtime_core.errors import ModelError
from runtime_core.gateway.answer import complete
from runtime_core.gateway.bounds import ARGS_FACTOR
from runtime_core.gateway.messages import sendable
from runtime_core.gateway.script import Script
from runtime_core.gateway.scripted import PROVIDER, Scene, scene_of
from runtime_core.gateway.usage import usage_of
from runtime_core.gateway.values import Answer, ModelCall, StreamStopped, TextDelta
from runtime_core.limits import limits
from runtime_core.sanitize import storable_text


def played(call: ModelCall, script: Script, stop: threading.Event) -> Iterator[TextDelta | Answer]:
    """The script's next turn as `stream` gives it: its text, then the complete answer, or the error that it plans."""
    began = monotonic()
    messages = sendable(call.messages)
    try:
        scene = scene_of(script, messages)
    except ModelError as error:
        error.data.setdefault("text", "")
        raise
    text = str(scene.filled(scene.turn.text))
    response = _response(script, scene, text)
    cut = _over(response)
    if cut:
        text = text[: limits().model_text_bytes]
        response.parts = [TextPart(text)]
    for start in range(0, len(text), script.chunk_chars):
        piece = text[start : start + script.chunk_chars]
        yield TextDelta(storable_text(piece), last=scene.turn.error is None)
        if stop.is_set():
            raise StreamStopped(text=text, usage=usage_of(_so_far(response), messages))
    try:
        scene.raise_planned()
    except ModelError as error:
        error.data.setdefault("text", storable_text(text))
        error.data.setdefault("usage", usage_of(_so_far(response), messages))
        raise
    response.usage = scene.used(response.parts)
    yield complete(
        response,
        cut=cut,
        history=messages,
        usage=usage_of(response, messages),
        model=str(response.model_name),
        provider=PROVIDER,
        first_token_seconds=monotonic() - began,
    )


def _over(response: ModelResponse) -> bool:
    """True if it is larger than a response may be: then it counts as cut off, like any other."""
    text = args = 0
    for part in response.parts:
        if isinstance(part, TextPart):
            text += len(part.content.encode("utf-8", "replace"))
        elif isinstance(part, ToolCallPart):
            args += len(str(part.args))
    return text > limits().model_text_bytes or args > ARGS_FACTOR * limits().tool_args_bytes


def _response(script: Script, scene: Scene, text: str) -> ModelResponse:
    calls = [
        ToolCallPart(call.tool, scene.args_text(call), tool_call_id=f"call_{scene.id}_{number}")
        for number, call in enumerate(scene.turn.calls)
    ]
    return ModelResponse(
        parts=[*([TextPart(text)] if text else []), *calls],
        model_name=f"script:{script.name}",
        timestamp=now(),
        provider_name=PROVIDER,
        provider_response_id=scene.id,
        provider_details={"script": script.name, "turn": scene.turn.id},
        finish_reason="tool_call" if calls else "stop",
    )


def _so_far(response: ModelResponse) -> ModelResponse:
    """The response with nothing but its text: what had come when it broke off."""
    return ModelResponse(
        parts=[part for part in response.parts if isinstance(part, TextPart)],
        model_name=response.model_name,
        provider_name=response.provider_name,
    )

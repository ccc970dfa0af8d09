"""The conversation as messages: made, stored, read back, and in an order every provider accepts."""

from __future__ import annotations

import copy
import dataclasses
import json
import re
from collections.abc import Iterable, Sequence
from typing import Literal

from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from runtime_core.clock import now
from runtime_core.values import Json, ProposedCall

Outcome = Literal["success", "failed", "denied"]

NO_RESULT = "No result: the run was interrupted; it is not known whether this was executed."

_UNSTORABLE = re.compile(r"\\u0000|[\ud800-\udfff]")
# What is None here must be written: without it, it would become something else.
_NO_DEFAULT = frozenset(("content", "timestamp", "tool_call_id"))
_BAD_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_NAME_LENGTH = 64


def dump(message: ModelMessage) -> Json:
    """The message as JSON that PostgreSQL can hold; `load` gives back an equal one.

    One with characters that `jsonb` cannot hold becomes `{"ascii": its JSON as escaped text}`.
    """
    value = _without_defaults(ModelMessagesTypeAdapter.dump_python([message], mode="json")[0])
    text = json.dumps(value, ensure_ascii=False)
    return {"ascii": json.dumps(value)} if _UNSTORABLE.search(text) else value


def _without_defaults(value: Json) -> Json:
    """Half of a short message is fields that say nothing; reading it gives them back."""
    slim = {**_said(value), "parts": [_said(part) for part in value["parts"]]}
    if "usage" in slim:
        slim["usage"] = {name: number for name, number in slim["usage"].items() if number}
    return slim


def _said(fields: Json) -> Json:
    return {name: v for name, v in fields.items() if v is not None or name in _NO_DEFAULT}


def load(value: Json) -> ModelMessage:
    """The message that `dump` stored."""
    if value.keys() == {"ascii"}:
        value = json.loads(value["ascii"])
    return ModelMessagesTypeAdapter.validate_python([value])[0]


def user_request(text: str, instructions: str | None = None) -> ModelRequest:
    """What the user says."""
    at = now()
    return ModelRequest(
        parts=[UserPromptPart(text, timestamp=at)], timestamp=at, instructions=instructions
    )


def spoken(text: str, speaker: str) -> ModelResponse:
    """An answer that no model gave."""
    parts = [TextPart(text)]
    return ModelResponse(parts=parts, model_name=speaker, timestamp=now(), finish_reason="stop")


def tool_results(results: Iterable[tuple[str, str, Json, Outcome]]) -> ModelRequest:
    """The results of one response's calls, each as (call id, tool, content, outcome)."""
    at = now()
    parts = [
        ToolReturnPart(
            tool_name=tool, content=content, tool_call_id=call_id, outcome=outcome, timestamp=at
        )
        for call_id, tool, content, outcome in results
    ]
    return ModelRequest(parts=parts, timestamp=at)


def calls_of(response: ModelResponse) -> tuple[ProposedCall, ...]:
    """The calls that a response proposes, in its own words."""
    return tuple(
        ProposedCall(part.tool_call_id, part.tool_name, _args_text(part))
        for part in _call_parts(response)
    )


def text_of(response: ModelResponse) -> str:
    """What a response says in plain text."""
    return "".join(part.content for part in response.parts if isinstance(part, TextPart))


def prompt_of(messages: Sequence[ModelMessage]) -> str:
    """What the user asked for last."""
    for message in reversed(messages):
        said = [part.content for part in message.parts if isinstance(part, UserPromptPart)]
        texts = [content for content in said if isinstance(content, str)]
        if texts:
            return "\n".join(texts)
    return ""


def answers_every_call(messages: Sequence[ModelMessage]) -> bool:
    """True if every call has exactly one result, directly after it, and every result its call."""
    expected: list[str] = []
    for message in messages:
        got = [part.tool_call_id for part in message.parts if isinstance(part, ToolReturnPart)]
        if sorted(got) != sorted(expected):
            return False
        expected = [part.tool_call_id for part in _call_parts(message)]
    return not expected


def paired(messages: Sequence[ModelMessage]) -> tuple[ModelMessage, ...]:
    """The messages with exactly one result for each call, directly after it, in the calls' order.

    A call without a result gets one that says that nobody knows whether it was executed; a second
    result of a call and a result without a call are left out.
    """
    if answers_every_call(messages):
        return tuple(messages)
    ordered: list[ModelMessage] = []
    for position, message in enumerate(messages):
        if isinstance(message, ModelRequest):
            rest = [part for part in message.parts if not isinstance(part, ToolReturnPart)]
            if rest:
                ordered.append(dataclasses.replace(message, parts=rest))
            continue
        ordered.append(message)
        if calls := _call_parts(message):
            ordered.append(_results_for(message, calls, messages[position + 1 :]))
    return tuple(ordered)


def sendable(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """The messages as any provider takes them: paired, and tool names in the letters they allow."""
    return [_with_plain_names(message) for message in paired(messages)]


def _results_for(
    response: ModelResponse, calls: Sequence[ToolCallPart], later: Sequence[ModelMessage]
) -> ModelRequest:
    found: dict[str, ToolReturnPart] = {}
    for message in later:
        for part in message.parts:
            if isinstance(part, ToolReturnPart):
                found.setdefault(part.tool_call_id, part)
    missing = {call.tool_call_id: call for call in calls if call.tool_call_id not in found}
    for call_id, call in missing.items():
        found[call_id] = ToolReturnPart(
            tool_name=call.tool_name,
            content=NO_RESULT,
            tool_call_id=call_id,
            outcome="interrupted",
            timestamp=response.timestamp,
        )
    return ModelRequest(
        parts=[found[call.tool_call_id] for call in calls], timestamp=response.timestamp
    )


def _with_plain_names(message: ModelMessage) -> ModelMessage:
    if not any(
        _BAD_NAME.search(name) or not 0 < len(name) <= _NAME_LENGTH for name in _names(message)
    ):
        return message
    parts = [copy.copy(part) for part in message.parts]
    for part in parts:
        if isinstance(part, ToolCallPart | ToolReturnPart):
            part.tool_name = _plain(part.tool_name)
    return dataclasses.replace(message, parts=parts)  # type: ignore[arg-type]


def _names(message: ModelMessage) -> list[str]:
    return [
        part.tool_name for part in message.parts if isinstance(part, ToolCallPart | ToolReturnPart)
    ]


def _plain(name: str) -> str:
    return _BAD_NAME.sub("_", name)[:_NAME_LENGTH] or "unknown"


def _call_parts(message: ModelMessage) -> list[ToolCallPart]:
    if not isinstance(message, ModelResponse):
        return []
    return [part for part in message.parts if isinstance(part, ToolCallPart)]


def _args_text(part: ToolCallPart) -> str:
    match part.args:
        case None:
            return ""
        case str():
            return part.args
    return json.dumps(part.args, ensure_ascii=False)

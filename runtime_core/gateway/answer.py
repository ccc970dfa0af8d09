"""Decides whether a response counts: only a complete one does, and only in its own words."""

from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Iterable, Sequence
from typing import cast

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ThinkingPart, ToolCallPart

from runtime_core.errors import ModelProtocolError, ModelRefused, ModelRejected
from runtime_core.gateway.messages import calls_of, dump, load, text_of
from runtime_core.gateway.values import Answer
from runtime_core.values import Usage

_SURROGATE = re.compile("[\ud800-\udfff]")


def complete(
    response: ModelResponse,
    *,
    cut: bool,
    history: Sequence[ModelMessage],
    usage: Usage,
    model: str,
    provider: str,
    first_token_seconds: float | None,
) -> Answer:
    """The answer that `response` is, with call ids that are new to `history`.

    Raises ModelProtocolError if it is not complete, ModelRefused if the model or a filter refused,
    ModelRejected if it stopped for an unknown reason. `cut` says that we stopped reading it
    ourselves, which is the same as its token limit.
    """
    if cut:
        response = dataclasses.replace(response, finish_reason="length", state="complete")
    _check_finished(response)
    if response.finish_reason == "length":
        response = _without_calls(response)
    # Through storage and back, so that what the caller holds is what a later process will read.
    stored = load(dump(_with_new_ids(_with_whole_characters(response), history)))
    response = cast(ModelResponse, stored)
    return Answer(
        response=response,
        text=text_of(response),
        calls=calls_of(response),
        usage=usage,
        model=model,
        provider=provider,
        finish_reason=str(response.finish_reason),
        first_token_seconds=first_token_seconds,
    )


def _check_finished(response: ModelResponse) -> None:
    raw = (response.provider_details or {}).get("finish_reason")
    if response.finish_reason == "content_filter":
        _raise_refused(response, raw)
    if response.state != "complete":
        raise ModelProtocolError("The model's stream ended before the answer was complete.")
    if response.finish_reason in (None, "error"):
        raise ModelRejected(
            f"The model stopped for a reason that is not known here: {str(raw)[:100]!r}. "
            "Nothing of the answer was used; does the model fit its provider in INTERLOCK_MODEL?",
            finish_reason=raw,
        )
    calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
    if response.finish_reason == "tool_call" and not calls:
        raise ModelProtocolError("The model's stream announced tool calls and held none.")
    ids = [part.tool_call_id for part in calls]
    if len(set(ids)) != len(ids):
        raise ModelProtocolError(
            "Two tool calls of one response have the same id; none was executed."
        )


def _raise_refused(response: ModelResponse, raw: object) -> None:
    refusal = (response.provider_details or {}).get("refusal")
    said = refusal if isinstance(refusal, str) else text_of(response)
    raise ModelRefused(
        f"The model refused to answer: {said[:500]}"
        if said
        else "The provider's filter stopped the answer.",
        text=said,
        finish_reason=raw or "refusal",
    )


def _without_calls(response: ModelResponse) -> ModelResponse:
    # A cut-off response may end inside a call, and not every cut shows: none of them is trusted.
    dropped = [part.tool_name for part in response.parts if isinstance(part, ToolCallPart)]
    if not dropped:
        return response
    return dataclasses.replace(
        response,
        parts=[part for part in response.parts if not isinstance(part, ToolCallPart)],
        metadata={**(response.metadata or {}), "dropped_calls": dropped},
    )


def _with_whole_characters(response: ModelResponse) -> ModelResponse:
    """`response` with surrogate pairs joined and lone ones replaced: those cannot be sent back."""

    def clean(text: str) -> str:
        if not _SURROGATE.search(text):
            return text
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    parts = []
    for part in response.parts:
        if isinstance(part, TextPart | ThinkingPart):
            part = dataclasses.replace(part, content=clean(part.content))
        elif isinstance(part, ToolCallPart):
            part = copy.copy(part)
            part.tool_name = clean(part.tool_name)
            part.args = clean(part.args) if isinstance(part.args, str) else part.args
        parts.append(part)
    return dataclasses.replace(response, parts=parts)


def _with_new_ids(response: ModelResponse, history: Iterable[ModelMessage]) -> ModelResponse:
    # Some servers number calls from zero in each response; an id must name one call of the thread.
    taken = {
        part.tool_call_id
        for message in history
        for part in message.parts
        if isinstance(message, ModelResponse) and isinstance(part, ToolCallPart)
    }
    parts = [
        dataclasses.replace(part, tool_call_id=_new_id(part.tool_call_id, taken))
        if isinstance(part, ToolCallPart) and part.tool_call_id in taken
        else part
        for part in response.parts
    ]
    return dataclasses.replace(response, parts=parts)


def _new_id(call_id: str, taken: set[str]) -> str:
    number = 2
    while f"{call_id}-{number}" in taken:
        number += 1
    return f"{call_id}-{number}"

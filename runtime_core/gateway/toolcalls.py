"""Puts the chunks of a chat completion in order: whose piece is this, and was that the end?

Servers that speak this format number the pieces of tool calls differently: without an index, with a
null one, with 0 for all, with the id in every piece or only in the first. Keyed by the index alone,
two calls melt into one. Here each piece is given to its call by what it says, and gets an index of
our own; what could belong to two calls is an error, and nothing of the response is used.
"""

from __future__ import annotations

import functools
import json
from collections.abc import AsyncIterable, AsyncIterator, Hashable
from dataclasses import dataclass, field
from typing import Any, Self

from openai.types.chat import ChatCompletionChunk
from openai.types.chat.chat_completion_chunk import ChoiceDeltaToolCall, ChoiceDeltaToolCallFunction
from pydantic_ai.models.openai import OpenAIChatModel

from runtime_core.errors import ModelProtocolError, ModelRejected
from runtime_core.gateway.errors import clean

_AMBIGUOUS = "The pieces of the model's tool calls cannot be told apart; none of them was executed."


def with_checked_streams(model: OpenAIChatModel) -> None:
    """Make `model`, of whatever subclass, read its streams through `CheckedChunks`."""
    model.__class__ = _checked_model(type(model))


@functools.cache
def _checked_model(model_class: type[OpenAIChatModel]) -> type[OpenAIChatModel]:
    # pydantic-ai picks the class for a provider; only two documented hooks of it are changed.
    def streamed_response_class(self: Any) -> type[Any]:
        return _checked_stream(model_class._streamed_response_cls.fget(self))  # type: ignore[attr-defined]

    return type(
        model_class.__name__,
        (model_class,),
        {"_streamed_response_cls": property(streamed_response_class)},
    )


@functools.cache
def _checked_stream(stream_class: type[Any]) -> type[Any]:
    def validate_response(self: Any) -> CheckedChunks:
        return CheckedChunks(stream_class._validate_response(self))

    return type(stream_class.__name__, (stream_class,), {"_validate_response": validate_response})


class CheckedChunks:
    """The chunks of a stream, tool calls in order; ModelProtocolError if they end too early."""

    # A plain iterator: an abandoned async generator would be left for the loop to finalise.

    def __init__(self, chunks: AsyncIterable[ChatCompletionChunk]) -> None:
        self._chunks: AsyncIterator[ChatCompletionChunk] = aiter(chunks)
        self._calls = CallAssembly()
        self._finish_reason: str | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ChatCompletionChunk:
        try:
            chunk = await anext(self._chunks)
        except StopAsyncIteration:
            self._check_end()
            raise
        if chunk.choices:
            self._order(chunk.choices[0])
        else:
            _check_no_error(chunk)
        return chunk

    def _order(self, choice: Any) -> None:
        self._finish_reason = choice.finish_reason or self._finish_reason
        pieces = getattr(choice.delta, "tool_calls", None)
        if pieces:
            choice.delta.tool_calls = self._calls.place(pieces)

    def _check_end(self) -> None:
        if self._finish_reason is None:
            raise ModelProtocolError(
                "The model's stream ended without its end mark; nothing of it was used."
            )
        if self._finish_reason == "function_call":
            raise ModelRejected(
                "The model stopped with 'function_call', an old form of tool call that is not read."
            )
        if self._finish_reason != "length":
            self._calls.check()


def _check_no_error(chunk: ChatCompletionChunk) -> None:
    extra = chunk.model_extra or {}
    if chunk.usage is None and (
        extra.get("type") == "error" or "message" in extra or "detail" in extra
    ):
        said = clean(str(extra.get("message") or extra.get("detail") or "it does not say which"))
        raise ModelProtocolError(f"The model's provider sent an error inside the stream: {said}")


@dataclass(slots=True)
class _Call:
    ordinal: int
    id: str | None
    index: int | None
    name: str = ""
    args: list[str] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """True if the arguments are complete JSON by now."""
        return bool(self.args) and _is_json("".join(self.args))


class CallAssembly:
    """Which call each piece belongs to.

    1. A known id: that call. An unknown id: a new call, or the late id of an open call without.
    2. No id: the last call with that index, or at that place in the chunk, or the last call at all;
    3. but a name after complete arguments starts a new call.
    """

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._by_id: dict[str, _Call] = {}
        self._by_key: dict[Hashable, _Call] = {}
        self._doubtful = False

    def place(self, pieces: Any) -> list[ChoiceDeltaToolCall]:
        """The pieces of one chunk with the index of their calls, without repeated names and ids."""
        if not isinstance(pieces, list):
            raise ModelProtocolError(_AMBIGUOUS)
        alone = len(pieces) == 1
        return [
            self._place(piece, None if alone else position) for position, piece in enumerate(pieces)
        ]

    def check(self) -> None:
        """Raise if a call has no name, or if pieces may have gone to the wrong call."""
        if any(not call.name for call in self._calls):
            raise ModelProtocolError(
                "A tool call of the model has no name; none of its calls was executed."
            )
        torn = any(call.args and not call.whole for call in self._calls)
        if self._doubtful and torn and len(self._calls) > 1:
            raise ModelProtocolError(_AMBIGUOUS)

    def _place(self, piece: Any, position: int | None) -> ChoiceDeltaToolCall:
        index = piece.index if type(getattr(piece, "index", None)) is int else None
        name, args = _text(piece, "name"), _text(piece, "arguments")
        key = index if index is not None else None if position is None else ("place", position)
        call_id = piece.id if isinstance(piece.id, str) and piece.id else None
        call = self._owner(call_id, key, index, name, args)
        started = call is None
        if call is None:
            call = self._start(call_id, key, index)
        late_id = call_id if call_id and (started or call.id != call_id) else None
        if late_id:
            call.id = late_id
            self._by_id[late_id] = call
        if name == call.name and not started:
            name = ""
        call.name += name
        if args:
            call.args.append(args)
        placed: ChoiceDeltaToolCall = piece.model_copy(
            update={
                "index": call.ordinal,
                "id": late_id,
                "function": ChoiceDeltaToolCallFunction(name=name or None, arguments=args or None),
            }
        )
        return placed

    def _owner(
        self, call_id: str | None, key: Hashable, index: int | None, name: str, args: str
    ) -> _Call | None:
        if call_id and (known := self._by_id.get(call_id)):
            moved = index is not None and known.index is not None and index != known.index
            if moved or (name and args and known.whole):
                raise ModelProtocolError(_AMBIGUOUS)
            return known
        if key is None and self._calls:
            self._doubtful = self._doubtful or not call_id
            latest: _Call | None = self._calls[-1]
        else:
            latest = self._by_key.get(key)
        if latest is None:
            return None
        if call_id:
            return (
                latest
                if latest.id is None and not (name and (latest.whole or latest.name))
                else None
            )
        if name and latest.whole:
            return None
        if name and latest.args and name != latest.name:
            raise ModelProtocolError(_AMBIGUOUS)
        return latest

    def _start(self, call_id: str | None, key: Hashable, index: int | None) -> _Call:
        call = _Call(ordinal=len(self._calls), id=call_id, index=index)
        self._doubtful = self._doubtful or key in self._by_key
        self._calls.append(call)
        if key is not None:
            self._by_key[key] = call
        return call


def _text(piece: Any, field: str) -> str:
    value = getattr(getattr(piece, "function", None), field, None)
    if value is not None and not isinstance(value, str):
        raise ModelProtocolError(
            f"The {field} of a tool call of the model is not text; none of its calls was executed."
        )
    return value or ""


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True

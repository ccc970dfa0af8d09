"""A conversation that no longer fits its model is cut by whole groups: a call never loses its result or reasoning.

A group is a request of the user, or a response with the results of all its calls. The oldest groups are left out of
what is sent; the request at hand and what the system says stay. Nothing is changed in what is stored.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    SystemPromptPart,
    ToolReturnPart,
    UserPromptPart,
)

from runtime_core.sanitize import canonical, clip
from runtime_core.values import Json

NOTE = (
    "[{count} earlier messages of this conversation are left out here, because it is longer than you can read at once. "
    "What they did stays done.]"
)
BYTES_A_TOKEN = 4
# Compaction begins when so much of the window is used, and makes room down to the second figure, so that it is rare.
NEARLY_FULL = 0.8
MADE_ROOM = 0.5
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
SMALLEST_RESULT = 200
_PART_BYTES = 40


@dataclass(frozen=True, slots=True)
class Window:
    """What is sent: without the `cut` oldest messages, and with `shrunk` results of the last turn shortened."""

    messages: tuple[ModelMessage, ...]
    cut: int
    shrunk: int = 0


def room_of(context_tokens: int) -> int:
    """How many bytes of conversation a model with such a window is sent at most."""
    return int(context_tokens * BYTES_A_TOKEN * NEARLY_FULL)


def fit(messages: Sequence[ModelMessage], room: int, cut: int = 0) -> Window:
    """The messages in at most `room` bytes where that is possible; `cut` is what was left out of them before.

    Where even the last group is too long by itself, its results are shortened and its structure stays.
    """
    starts = _starts(messages)
    sizes = [_message_bytes(message) for message in messages]
    if _size_from(messages, sizes, cut) > room:
        cut = _cut(messages, sizes, starts, cut, int(room * MADE_ROOM / NEARLY_FULL))
    shown = _without(messages, cut)
    excess = _size_from(messages, sizes, cut) - room
    if excess <= 0:
        return Window(shown, cut)
    last, shrunk = _shrunk(shown, len(messages) - starts[-1], excess)
    return Window(last, cut, shrunk)


def size_of(messages: Sequence[ModelMessage]) -> int:
    """About how many bytes the messages are when sent."""
    return sum(_message_bytes(message) for message in messages)


def _starts(messages: Sequence[ModelMessage]) -> list[int]:
    """Where the groups begin: at each response, and at each request that is no answer to one."""
    return [
        position
        for position, message in enumerate(messages)
        if position == 0 or isinstance(message, ModelResponse) or not _has_results(message)
    ]


def _cut(
    messages: Sequence[ModelMessage], sizes: list[int], starts: list[int], least: int, goal: int
) -> int:
    """The first start of a group, not before `least`, from which the rest fits `goal`; the last group stays anyway."""
    later = [start for start in starts if start >= least]
    for start in later[:-1]:
        if _size_from(messages, sizes, start) <= goal:
            return start
    return later[-1] if later else least


def _size_from(messages: Sequence[ModelMessage], sizes: list[int], cut: int) -> int:
    head = _message_bytes(_head(messages, cut)) if cut else 0
    return head + sum(sizes[cut:])


def _without(messages: Sequence[ModelMessage], cut: int) -> tuple[ModelMessage, ...]:
    """The messages from `cut` on, behind what must not be missing of those before it."""
    return (_head(messages, cut), *messages[cut:]) if cut else tuple(messages)


def _head(messages: Sequence[ModelMessage], cut: int) -> ModelRequest:
    """What the system says and the user asked last, where it is left out, and a note that something is."""
    parts: list[ModelRequestPart] = [
        part for part in _parts(messages[:cut]) if isinstance(part, SystemPromptPart)
    ]
    asked = _last_request(messages)
    if asked is not None and asked < cut:
        parts += [part for part in _parts([messages[asked]]) if isinstance(part, UserPromptPart)]
    since = messages[cut if asked is None else asked].timestamp or EPOCH
    note = UserPromptPart(NOTE.format(count=cut), timestamp=since)
    return ModelRequest(parts=[*parts, note], timestamp=since)


def _parts(messages: Sequence[ModelMessage]) -> Iterator[ModelRequestPart]:
    for message in messages:
        if isinstance(message, ModelRequest):
            yield from message.parts


def _last_request(messages: Sequence[ModelMessage]) -> int | None:
    """The place of what the user asked last."""
    for position in range(len(messages) - 1, -1, -1):
        if any(isinstance(part, UserPromptPart) for part in messages[position].parts):
            return position
    return None


def _has_results(message: ModelMessage) -> bool:
    return any(isinstance(part, ToolReturnPart) for part in message.parts)


def _shrunk(
    messages: tuple[ModelMessage, ...], last: int, excess: int
) -> tuple[tuple[ModelMessage, ...], int]:
    """The same messages with the results among the `last` ones shortened by about `excess` bytes in all."""
    tail = messages[-last:]
    sizes = sorted(_result_bytes(part) for part in _parts(tail) if isinstance(part, ToolReturnPart))
    most = _level(sizes, sum(sizes) - excess)
    count = 0
    made: list[ModelMessage] = []
    for message in tail:
        parts = [_clipped(part, most) for part in message.parts]
        changed = sum(new is not old for new, old in zip(parts, message.parts, strict=True))
        made.append(dataclasses.replace(message, parts=parts) if changed else message)  # type: ignore[arg-type]
        count += changed
    return (*messages[:-last], *made), count


def _level(sizes: list[int], room: int) -> int:
    """The height at which cutting off all that is higher leaves `room` in all: short results stay whole."""
    for position, size in enumerate(sizes):
        share = room // (len(sizes) - position)
        if size > share:
            return max(share, SMALLEST_RESULT)
        room -= size
    return max(sizes, default=0)


def _clipped(part: object, most: int) -> object:
    if not isinstance(part, ToolReturnPart) or _result_bytes(part) <= most:
        return part
    note_bytes = 60  # what `clip` says between head and tail
    text, _ = clip(_text(part.content), max(most - note_bytes, SMALLEST_RESULT - note_bytes))
    return dataclasses.replace(part, content=text)


def _message_bytes(message: ModelMessage) -> int:
    return sum(_part_bytes(part) for part in message.parts)


def _part_bytes(part: object) -> int:
    texts = (getattr(part, name, None) for name in ("content", "args", "signature", "tool_name"))
    return _PART_BYTES + sum(len(_text(text).encode("utf-8", "replace")) for text in texts if text)


def _result_bytes(part: ToolReturnPart) -> int:
    return len(_text(part.content).encode("utf-8", "replace"))


def _text(value: Json) -> str:
    return value if isinstance(value, str) else canonical(value)

"""What the `data` of each type of event holds at least, and a check that says what is missing.

run_status → (step_start → text_delta*, tool_call_start → progress* → tool_call_result,
interrupt, checkpoint, error)* → run_status → done
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from runtime_core.models.event import TYPES
from runtime_core.values import Json

HEARTBEAT = "heartbeat"  # sent to keep a connection alive, never stored

_TEXT: tuple[type, ...] = (str,)
_COUNT: tuple[type, ...] = (int,)
_FLAG: tuple[type, ...] = (bool,)
_ANY: tuple[type, ...] = (object,)


@dataclass(frozen=True, slots=True)
class Shape:
    """The keys that the data of one type must have and may have, with the types of their values."""

    required: Mapping[str, tuple[type, ...]]
    optional: Mapping[str, tuple[type, ...]]


def _shape(
    optional: Mapping[str, tuple[type, ...]] | None = None, /, **keys: tuple[type, ...]
) -> Shape:
    # `from` is a keyword of Python, so it is written with an underscore here.
    return Shape({name.rstrip("_"): types for name, types in keys.items()}, optional or {})


SHAPES: Mapping[str, Shape] = {
    "run_status": _shape(from_=(str, type(None)), to=_TEXT, cause=_TEXT),
    "step_start": _shape(kind=_TEXT, index=_COUNT),
    # `since`: it stands for a row of such events that were folded into it, from that number to its own.
    "text_delta": _shape({"since": _COUNT}, step=_COUNT, offset=_COUNT, text=_TEXT),
    "tool_call_start": _shape(call_id=_TEXT, tool=_TEXT, args=_ANY),
    "tool_call_result": _shape(
        call_id=_TEXT, tool=_TEXT, status=_TEXT, result=_ANY, truncated=_FLAG
    ),
    "progress": _shape({"fraction": (int, float), "since": _COUNT}, message=_TEXT),
    "checkpoint": _shape(id=_TEXT, reason=_TEXT),
    "interrupt": _shape(id=_TEXT, kind=_TEXT, tool=_TEXT),
    "error": _shape(code=_TEXT, message=_TEXT, retryable=_FLAG),
    "done": _shape(status=_TEXT, output=(str, type(None))),
}


def problems(type: str, data: Mapping[str, Json]) -> list[str]:
    """What is wrong with an event of this type, one sentence each; nothing for a good one."""
    if type not in TYPES:
        return [f"{type!r} is no type of event"]
    shape = SHAPES[type]
    missing = [f"{type}: {name} is missing" for name in shape.required if name not in data]
    known = {**shape.required, **shape.optional}
    wrong = [
        f"{type}: {name} is {value.__class__.__name__}"
        for name, value in data.items()
        if name in known and not _fits(value, known[name])
    ]
    return missing + wrong


def _fits(value: Json, types: tuple[type, ...]) -> bool:
    # True is an int to Python, not to a client.
    return isinstance(value, types) and (
        bool in types or object in types or value.__class__ is not bool
    )

"""Plain forms: values that JSON has no kind for, and exceptions, as values it has."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import Enum
from typing import Any

from traces.redact.clean import decode_bytes

MAX_CAUSES = 10
MAX_INT_BITS = 4_096


def json_key(name: Any) -> str:
    """Return the text JSON uses for a mapping key of any type."""
    if isinstance(name, str):
        return str(name)
    if isinstance(name, bytes):
        return decode_bytes(name)
    if name is None or isinstance(name, bool):
        return {None: "null", True: "true", False: "false"}[name]
    if isinstance(name, int) and name.bit_length() > MAX_INT_BITS:
        return f"[number of {name.bit_length()} bits]"
    return str(name)[:512]


def unused_name(name: str, taken: Mapping[str, Any]) -> str:
    """Return the name, numbered if another name became the same by redaction."""
    if name not in taken:
        return name
    count = 2
    while f"{name} ({count})" in taken:
        count += 1
    return f"{name} ({count})"


def plain_form(value: Any) -> Any:
    """Return a value of JSON kinds for an object of another kind."""
    if isinstance(value, BaseException):
        return describe_exception(value)
    if isinstance(value, Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return dump(mode="python")
    return str(value)


def describe_exception(error: BaseException) -> dict[str, Any]:
    """Return type, message, notes and the chain of causes of an exception, at most ten long."""
    described: dict[str, Any] = {}
    place = described
    current: BaseException | None = error
    for _ in range(MAX_CAUSES):
        if current is None:
            break
        place["type"] = type(current).__qualname__
        place["message"] = str(current)
        if notes := getattr(current, "__notes__", None):
            place["notes"] = [str(note) for note in notes]
        if isinstance(current, BaseExceptionGroup):
            place["exceptions"] = [
                {"type": type(e).__qualname__, "message": str(e)} for e in current.exceptions
            ]
        current = current.__cause__ or (
            None if current.__suppress_context__ else current.__context__
        )
        if current is not None:
            place["cause"] = {}
            place = place["cause"]
    return described

"""What a tool returned, as JSON that can be stored and is bounded."""

from __future__ import annotations

from typing import Any, Literal

import pydantic_core

from runtime_core.sanitize import canonical, clip, storable
from runtime_core.values import Json

_SMALLEST_TEXT = 200


def storable_result(returned: Any, max_bytes: int) -> tuple[Json, bool]:
    """`returned` as JSON of about `max_bytes` at most, and whether something was left out.

    Models, dataclasses, enums and dates become JSON, decimals text. Never raises: a tool that did
    its work must not count as failed because of what it returned.
    """
    value = _json(returned)
    try:
        return _bounded(value, max_bytes)
    except (ValueError, RecursionError):  # such as a number with more digits than JSON may have
        return f"<{type(returned).__name__} that cannot be written as JSON>", False


def _json(returned: Any) -> Json:
    mode: Literal["base64", "utf8"] = "base64" if _has_binary(returned) else "utf8"
    try:
        plain = pydantic_core.to_jsonable_python(
            returned, fallback=_describe, inf_nan_mode="strings", bytes_mode=mode
        )
    except Exception:  # noqa: BLE001  a value with a broken or endless serialisation is still described
        plain = _describe(returned)
    return storable(plain)


def _has_binary(returned: Any) -> bool:
    if not isinstance(returned, bytes | bytearray):
        return False
    try:
        returned.decode()
    except UnicodeDecodeError:
        return True
    return False


def _describe(value: Any) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001  see _json
        return f"<{type(value).__name__}>"


def _bounded(value: Json, max_bytes: int) -> tuple[Json, bool]:
    if _size(value) <= max_bytes:
        return value, False
    if isinstance(value, str):
        return _clipped(value, max_bytes), True
    if isinstance(value, dict):
        shortened = _with_shorter_texts(value, max_bytes)
        if shortened is not None:
            return shortened, True
    return {"text": _clipped(canonical(value), max_bytes)}, True


def _clipped(text: str, max_bytes: int) -> str:
    """Control characters and quotes take more room in JSON than in the text."""
    room = max_bytes
    while True:
        room = room * 9 // 10
        short = clip(text, room)[0]
        if _size(short) <= max_bytes:
            return short


def _with_shorter_texts(value: dict[str, Json], max_bytes: int) -> dict[str, Json] | None:
    """The same object with its longest texts cut until it fits, or None if they are not what makes
    it long.
    """
    made = dict(value)
    for _ in range(len(made)):
        texts = {key: _size(item) for key, item in made.items() if isinstance(item, str)}
        longest = max(texts, key=lambda key: texts[key], default=None)
        excess = _size(made) - max_bytes
        if excess <= 0:
            return made
        if longest is None or texts[longest] <= _SMALLEST_TEXT:
            return None
        # An escaped character may take six bytes, so the text shrinks in proportion to what it
        # takes.
        raw = len(made[longest].encode("utf-8", "replace"))
        share = max(texts[longest] - excess - _SMALLEST_TEXT, _SMALLEST_TEXT) / texts[longest]
        made[longest] = clip(made[longest], int(raw * share))[0]
    return made if _size(made) <= max_bytes else None


def _size(value: Json) -> int:
    return len(canonical(value).encode("utf-8", "replace"))

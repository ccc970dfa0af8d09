"""State is plain JSON or it is refused where it is saved, with the place: nothing odd is found out at a resume."""

from __future__ import annotations

import math
import re
from typing import Any

from runtime_core.errors import StateNotPlain
from runtime_core.values import Json

MAX_DEPTH = 64
_AS_THEY_ARE = frozenset((int, bool, type(None)))
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def require_plain(value: object, at: str = "state") -> Json:
    """`value` itself, if JSON gives it back as exactly what it is; StateNotPlain names the first place that differs.

    Subclasses are refused too: an enum would come back as a text, a named tuple as a list, a counter as a dict.
    """
    _check(value, at, 0)
    return value


def _check(value: Any, at: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise StateNotPlain(f"{at}: deeper than {MAX_DEPTH} levels", at=at)
    kind = type(value)
    if kind is dict:
        _check_fields(value, at, depth)
    elif kind is list:
        for index, item in enumerate(value):
            _check(item, f"{at}[{index}]", depth + 1)
    elif kind is str:
        _check_text(value, at)
    elif kind is float:
        if not math.isfinite(value):
            raise StateNotPlain(f"{at}: {value} is no number of JSON", at=at)
    elif kind not in _AS_THEY_ARE:
        raise StateNotPlain(f"{at}: {_name(value)} would not come back as it is", at=at)


def _check_fields(fields: dict[Any, Any], at: str, depth: int) -> None:
    for key, item in fields.items():
        if type(key) is not str:
            raise StateNotPlain(f"{at}: the key {key!r} is {_name(key)}, not a text", at=at)
        _check_text(key, at)
        _check(item, f"{at}.{key}", depth + 1)


def _check_text(text: str, at: str) -> None:
    if _UNSTORABLE.search(text):
        raise StateNotPlain(f"{at}: a text with NUL or half a character cannot be stored", at=at)


def _name(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")

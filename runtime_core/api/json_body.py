"""Reads a JSON body strictly: one meaning or none. What two parsers could read differently is refused."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from django.http import HttpRequest
from ninja.parser import Parser

from runtime_core.errors import InvalidInput, UnsupportedMediaType

MAX_DEPTH = 64


class StrictParser(Parser):
    """ninja's parser, with a strict reading of bodies."""

    def parse_body(self, request: HttpRequest) -> Any:
        refuse_other_media(request)
        return parse(request.body)


def refuse_other_media(request: HttpRequest) -> None:
    """Raise UnsupportedMediaType if the body says that it is something else than JSON."""
    given = request.content_type or ""
    if given and given != "application/json" and not given.endswith("+json"):
        raise UnsupportedMediaType(f"Send the body as application/json, not as {given[:100]}.")


def parse(body: bytes) -> Any:
    """The body's value; InvalidInput for bad UTF-8, bad JSON, duplicate keys, NaN, infinities and deep nesting."""
    try:
        text = body.decode("utf-8")
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )
    except UnicodeDecodeError as error:
        raise InvalidInput("The body is not UTF-8.") from error
    except RecursionError as error:
        raise InvalidInput(f"The body is nested deeper than {MAX_DEPTH} levels.") from error
    except json.JSONDecodeError as error:
        raise InvalidInput(
            f"The body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}."
        ) from error
    except ValueError as error:  # a number with thousands of digits
        raise InvalidInput("The body holds a number that is too long.") from error
    _refuse_depth(value)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        double = next(name for name in names if names.count(name) > 1)
        raise InvalidInput(f"The key {double[:100]!r} is given twice.", field=double[:100])
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidInput(f"{name} is not JSON; give a finite number or null.")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise InvalidInput(f"The number {text[:40]} is out of range.")
    return value


def _refuse_depth(value: Any) -> None:
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise InvalidInput(f"The body is nested deeper than {MAX_DEPTH} levels.")
        level = [inner for outer in level for inner in _inside(outer)]


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []

"""A form made from a tool's JSON schema, and the arguments made from the form again. Pure functions
of values.

What nobody touched keeps its exact value: a number's notation, a text's line ends, characters that
a browser alters.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from runtime_core.values import Json

PREFIX = "arg."
LONG_TEXT = 80
MISSING: Any = object()


@dataclass(frozen=True, slots=True)
class Field:
    """One argument in the form. `widget`: line, lines, number, choice or json; `shown` is the
    control's text.
    """

    key: str
    label: str
    hint: str
    widget: str
    shown: str
    is_required: bool
    choices: tuple[tuple[str, str], ...] = ()
    is_present: bool = True
    error: str = ""

    @property
    def name(self) -> str:
        """The control's name in the form."""
        return PREFIX + self.key


def fields_of(schema: Mapping[str, Json], args: Json) -> list[Field]:
    """The form of an object's arguments: the schema's properties in order, then whatever else is
    there.
    """
    if not isinstance(args, dict):
        return []
    properties = schema.get("properties") or {}
    required = set(schema.get("required") or ())
    keys = [*properties, *(key for key in args if key not in properties)]
    return [
        _field(
            key, _resolved(properties.get(key, {}), schema), args.get(key, MISSING), key in required
        )
        for key in keys
    ]


def read(
    schema: Mapping[str, Json], args: Json, posted: Mapping[str, str]
) -> tuple[dict[str, Json], list[Field]]:
    """The edited arguments, and the fields as posted, an error beside each that cannot be read."""
    edited: dict[str, Json] = {}
    fields = []
    for field in fields_of(schema, args):
        text = posted.get(field.name, field.shown)
        try:
            value = _value(field, text, args.get(field.key, MISSING))
        except ValueError as error:
            fields.append(replace(field, shown=text, error=str(error)))
            continue
        fields.append(replace(field, shown=text))
        if value is not MISSING:
            edited[field.key] = value
    return edited, fields


def as_json_text(value: Json) -> str:
    """JSON as a person edits it."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def is_same(one: Json, other: Json) -> bool:
    """Equal in value and type: 1 is neither true nor 1.0."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def parse_json(text: str) -> Json:
    """JSON as the standard has it; a key given twice, NaN or Infinity is a ValueError."""
    try:
        return json.loads(text, object_pairs_hook=_no_repeats, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"This is not JSON: {error.msg} in line {error.lineno}, column {error.colno}."
        ) from None
    except RecursionError:
        raise ValueError("This is nested too deeply.") from None


def _field(key: str, schema: Mapping[str, Json], value: Json, is_required: bool) -> Field:
    widget, choices = _widget(schema, value)
    return Field(
        key=key,
        label=key,
        hint=str(schema.get("description") or ""),
        widget=widget,
        shown=_shown(widget, value),
        is_required=is_required,
        choices=choices,
        is_present=value is not MISSING,
    )


def _widget(schema: Mapping[str, Json], value: Json) -> tuple[str, tuple[tuple[str, str], ...]]:
    types = _types(schema)
    if "enum" in schema:
        return "choice", tuple((_json(option), str(option)) for option in schema["enum"])
    if types == {"boolean"}:
        return "choice", (("true", "true"), ("false", "false"))
    if isinstance(value, str) and (not types or "string" in types):
        is_long = len(value) > LONG_TEXT or "\n" in value
        return ("lines" if is_long else "line"), ()
    if _is_number(value) and (not types or types & {"integer", "number"}):
        return "number", ()
    if value is MISSING and types and types <= {"integer", "number"}:
        return "number", ()
    if value is MISSING and "string" in types:
        return "line", ()
    return "json", ()


def _shown(widget: str, value: Json) -> str:
    if value is MISSING:
        return ""
    if widget in ("line", "lines"):
        return str(value)
    return json.dumps(value, ensure_ascii=False, indent=2 if widget == "json" else None)


def _value(field: Field, text: str, original: Json) -> Json:
    if _plain_lines(text) == _plain_lines(field.shown):
        return original
    if field.widget in ("line", "lines"):
        return _with_lines_of(original, text)
    if not text.strip() and not field.is_required:
        return MISSING
    if field.widget == "number":
        return _number(text.strip())
    if field.widget == "choice" and text not in {value for value, _ in field.choices}:
        raise ValueError("Choose one of the values.")
    return parse_json(text)


def _number(text: str) -> Json:
    try:
        value = parse_json(text)
    except ValueError:
        value = None
    if not _is_number(value) or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError("Enter a number, with a point for decimals.")
    return value


def _with_lines_of(original: Json, text: str) -> str:
    """Browsers send every line end as CR LF; give back those that the original had."""
    plain = _plain_lines(text)
    has_only_crlf = (
        isinstance(original, str)
        and "\r\n" in original
        and (original.count("\n") == original.count("\r\n"))
    )
    return plain.replace("\n", "\r\n") if has_only_crlf else plain


def _plain_lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _types(schema: Mapping[str, Json]) -> set[str]:
    options = schema.get("anyOf") or schema.get("oneOf") or [schema]
    found: set[str] = set()
    for option in options:
        kind = option.get("type", [])
        found |= {kind} if isinstance(kind, str) else set(kind)
    return found - {"null"}


def _resolved(schema: Mapping[str, Json], root: Mapping[str, Json]) -> Mapping[str, Json]:
    reference = schema.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return schema
    target: Any = root
    for part in reference[2:].split("/"):
        target = target.get(part, {}) if isinstance(target, Mapping) else {}
    return {**target, **{key: value for key, value in schema.items() if key != "$ref"}}


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def _no_repeats(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("A key is given twice in one object.")
    return found


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is not a JSON value.")

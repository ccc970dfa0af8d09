"""Arguments become a form and come back with their types; what nobody touched stays exact."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.inbox.edit_fields import Field, fields_of, parse_json, read

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "Who."},
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "share": {"type": "number"},
        "deep": {"type": "boolean"},
        "mode": {"enum": ["fast", "slow", 3]},
        "amount": {"anyOf": [{"type": "number"}, {"type": "string", "pattern": "^x"}]},
        "argv": {"type": "array", "items": {"type": "string"}},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "place": {"$ref": "#/$defs/Place"},
    },
    "required": ["name", "text", "count", "share", "deep", "mode", "amount", "argv", "place"],
    "$defs": {"Place": {"type": "object", "properties": {"x": {"type": "integer"}}}},
}
ARGS: dict[str, Any] = {
    "name": "Ana",
    "text": "one\ntwo\n",
    "count": 3,
    "share": 1e22,
    "deep": False,
    "mode": "fast",
    "amount": "20.00",
    "argv": ["ls", "-la"],
    "place": {"x": 1},
}


def posted(**changes: str) -> dict[str, str]:
    """What a browser sends: every field, every line end as CR LF."""
    shown = {field.name: field.shown.replace("\n", "\r\n") for field in fields_of(SCHEMA, ARGS)}
    return shown | {f"arg.{key}": text for key, text in changes.items()}


def error_of(key: str, fields: list[Field]) -> str:
    return next(field.error for field in fields if field.key == key)


def test_each_type_gets_the_control_that_keeps_it() -> None:
    widgets = {field.key: field.widget for field in fields_of(SCHEMA, ARGS)}

    assert widgets == {
        "name": "line",
        "text": "lines",
        "count": "number",
        "share": "number",
        "deep": "choice",
        "mode": "choice",
        "amount": "line",
        "argv": "json",
        "note": "line",
        "place": "json",
    }


def test_a_form_that_nobody_touched_gives_the_same_arguments() -> None:
    edited, fields = read(SCHEMA, ARGS, posted())

    assert edited == ARGS
    assert type(edited["share"]) is float
    assert not any(field.error for field in fields)


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("count", "42", 42),
        ("count", " -7 ", -7),
        ("count", str(10**30), 10**30),
        ("share", "0.5", 0.5),
        ("deep", "true", True),
        ("mode", '"slow"', "slow"),
        ("mode", "3", 3),
        ("amount", "5.00", "5.00"),
        ("argv", '["rm", "x y"]', ["rm", "x y"]),
        ("text", "one\r\nthree\r\n", "one\nthree\n"),
        ("text", "", ""),
        ("name", "42", "42"),
        ("name", "true", "true"),
        ("note", "hello", "hello"),
        ("place", '{"x": 2}', {"x": 2}),
    ],
)
def test_an_edit_keeps_the_type(key: str, text: str, value: Any) -> None:
    edited, _ = read(SCHEMA, ARGS, posted(**{key: text}))

    assert edited[key] == value
    assert type(edited[key]) is type(value)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("count", "many"),
        ("count", ""),
        ("count", "true"),
        ("share", "NaN"),
        ("share", "Infinity"),
        ("share", "1e999"),
        ("deep", "yes"),
        ("mode", "slow"),
        ("argv", "[ls"),
        ("argv", '{"a": 1, "a": 2}'),
        ("place", "NaN"),
    ],
)
def test_what_cannot_be_read_is_said_beside_its_field(key: str, text: str) -> None:
    _, fields = read(SCHEMA, ARGS, posted(**{key: text}))

    assert error_of(key, fields)
    assert next(field.shown for field in fields if field.key == key) == text
    assert sum(bool(field.error) for field in fields) == 1


def test_an_optional_argument_that_was_not_there_stays_away() -> None:
    edited, _ = read(SCHEMA, ARGS, posted(note=""))

    assert "note" not in edited


def test_a_text_with_crlf_keeps_it_when_edited() -> None:
    args = {"text": "one\r\ntwo\r\n"}

    edited, _ = read({}, args, {"arg.text": "one\r\nthree\r\n"})

    assert edited == {"text": "one\r\nthree\r\n"}


def test_arguments_that_the_schema_does_not_know_are_still_there() -> None:
    assert [field.key for field in fields_of({}, {"odd": {"a": None}})] == ["odd"]


@pytest.mark.parametrize("text", ["", "{", "nan", '{"a":1,"a":1}', "[" * 100_000, "1 2"])
def test_only_whole_json_is_read(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)

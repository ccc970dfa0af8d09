"""Known values are found exactly, however they are wrapped."""

from __future__ import annotations

import base64
import html
import json
import random
import shlex
import string
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest

from traces.redact import Engine, usable_known_values

_DICE = random.Random(11)
_SIGNS = string.ascii_letters + string.digits + "!#$%&'\"<>+/=@ äß"
VALUES = tuple(
    "".join(_DICE.choice(_SIGNS) for _ in range(_DICE.randint(8, 40))).strip() + "7q"
    for _ in range(200)
)
ENGINE = Engine(key=b"known", known_values=VALUES)
WRAPPINGS: dict[str, Callable[[str], str]] = {
    "raw": lambda v: f"got {v} back",
    "json": lambda v: json.dumps({"a": v}),
    "json in json": lambda v: json.dumps({"a": json.dumps({"b": v})}),
    "json unicode": lambda v: "x" + json.dumps({"a": v}, ensure_ascii=False),
    "percent": lambda v: f"https://h.test/?x={quote(v, safe='')}&y=1",
    "percent twice": lambda v: quote(quote(v, safe=""), safe=""),
    "form": lambda v: f"a=1&b={quote_plus(v)}",
    "hex": lambda v: f"xxd {v.encode().hex()}",
    "html": lambda v: f"<b>{html.escape(v)}</b>",
    "base64": lambda v: base64.b64encode(f"user:{v}".encode()).decode(),
    "base64 url": lambda v: base64.urlsafe_b64encode(f"u{v}-".encode()).decode(),
    "repr": lambda v: f"Client({v!r})",
    "shell": lambda v: f"run {shlex.quote(v)}",
}


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_it_finds_a_known_value_in_every_wrapping(wrapping: str) -> None:
    wrap = WRAPPINGS[wrapping]

    missed = [value for value in VALUES if "[REDACTED:" not in ENGINE.text(wrap(value))]
    raw = [value for value in VALUES if value in ENGINE.text(wrap(value))]

    assert raw == []
    assert len(missed) <= (2 if wrapping in ("repr", "shell") else 0), missed


def test_a_known_value_gets_one_marker_in_every_encoding() -> None:
    engine = Engine(key=b"k", known_values=["plain/Value+77"])

    shown = engine.text(f"plain/Value+77 {quote('plain/Value+77', safe='')}").split()

    assert shown[0] == shown[1]
    assert shown[0].startswith("[REDACTED:known#")


def test_a_known_value_of_several_lines_is_found_line_by_line() -> None:
    engine = Engine(
        key=b"k", known_values=["first line of the thing 1\nsecond line of the thing 2"]
    )

    assert "second line" not in engine.text("log: second line of the thing 2")


def test_a_whole_document_can_be_a_known_value() -> None:
    document = json.dumps({"kind": "x", "a": "plainword", "b": "otherword"})
    engine = Engine(key=b"k", known_values=[document])

    assert "plainword" not in engine.text(document)


def test_values_that_would_hide_harmless_text_are_not_searched_for() -> None:
    candidates = ["", "  ", "abc", "password", "production", "123456", "localhost", "aaaaaaaa",
                  "https://h.test/x", "/srv/app", "db.internal:5432", None, 7, "Zebra-77-moss"]  # fmt: skip

    assert usable_known_values(candidates) == ("Zebra-77-moss",)


def test_an_engine_learns_further_values_and_keeps_the_old_ones() -> None:
    engine = Engine(key=b"k", known_values=["first-Value-1"], version=3)

    further = engine.with_known_values(["second-Value-2"])

    assert further.version == 3
    assert further.text("first-Value-1 second-Value-2").count("[REDACTED:known#") == 2
    assert engine.text("see second-Value-2") == "see second-Value-2"


def test_a_known_value_inside_twice_encoded_text_is_found() -> None:
    engine = Engine(key=b"k", known_values=["bluebird over moss"])
    inner = base64.b64encode(b'{"x": "bluebird over moss"}')

    assert "[REDACTED:" in engine.text(base64.b64encode(b"data " + inner).decode())

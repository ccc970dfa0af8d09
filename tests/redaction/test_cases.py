"""Failure cases others reported, as far as they are the engine's."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.redaction.hostile import GENERATORS
from traces.redact import Engine

ENGINE = Engine(key=b"cases")
CANARIES = ("sk-test-" + "q9WmTzXr4LbNc7VdKj2H" * 2, "ghp_" + "a1B2c3D4e5f6" * 3)
H1_VALUES: list[Any] = [
    {"command": 'echo "=== deploy token ==="'},
    {"password": 'foo"bar_secret_value'},
    {"headers": {"Authorization": ["Bearer x", "Bearer y"], "z": 1}, "tail": "kept"},
    {"X-Api-Key": 12345},
    {"PASSWORD": "bar_secret_value"},
    {"nested": json.dumps({"command": 'echo "=== deploy token ==="'})},
    {"nested": json.dumps({"password": 'foo"bar_secret_value', "tail": "kept"})},
]
_GONE = ("bar_secret_value", "12345", "Bearer x", "Bearer y")


def shape(value: Any) -> Any:
    """The names and the nesting of a value, without its leaves."""
    if isinstance(value, dict):
        return {name: shape(item) for name, item in value.items()}
    return [shape(item) for item in value] if isinstance(value, list) else None


@pytest.mark.parametrize("value", H1_VALUES)
def test_h1_redacted_json_parses_and_keeps_its_shape(value: Any) -> None:
    redacted = ENGINE.redact(value).value
    text = ENGINE.text(json.dumps(value))

    assert shape(redacted) == shape(value)
    assert shape(json.loads(text)) == shape(value)
    for gone in _GONE:
        assert gone not in json.dumps(redacted)
        assert gone not in text
    if "tail" in value:
        assert redacted["tail"] == "kept"
        assert redacted["headers"]["z"] == 1


def test_h1_a_harmless_command_is_left_as_it_is() -> None:
    assert ENGINE.redact(H1_VALUES[0]).value == H1_VALUES[0]
    assert ENGINE.text(json.dumps(H1_VALUES[0])) == json.dumps(H1_VALUES[0])


def test_h1_json_inside_json_still_parses() -> None:
    redacted = ENGINE.redact(H1_VALUES[6]).value

    inner = json.loads(redacted["nested"])
    assert inner["tail"] == "kept"
    assert inner["password"].startswith("[REDACTED:password")


def test_h1_a_key_whose_begin_and_end_are_in_two_strings() -> None:
    lines = ["MIIEowIBAAKCAQEAqk3vQ1hJt3YwXb0N", "nS5rLq7uEoPaGd2cVfMiTyRjHk8Zk3vQ"]
    value = {
        "a": "-----BEGIN RSA PRIVATE KEY-----\n" + lines[0],
        "b": lines[1] + "\n-----END RSA PRIVATE KEY-----",
        "list": ["-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----", "kept"],
    }

    redacted = ENGINE.redact(value).value

    for line in lines:
        assert line not in json.dumps(redacted)
    assert redacted["list"][-1] == "kept"


def test_h1_two_values_under_one_name_are_both_redacted() -> None:
    text = '{"password": "first-Secret-9", "password": null}'

    assert "first-Secret-9" not in ENGINE.text(text)


@pytest.mark.parametrize("canary", CANARIES)
@pytest.mark.parametrize(
    "place",
    [
        "HTTPError for url https://h/?key={}",
        "tool said: {} (exit 1)",
        "run {} of alice",
        "Mozilla/5.0 ({})",
        "report-{}.txt",
        "approved, used {}",
        "  File \"/srv/app.py\", line 3, in call\n    get('{}')\n",
        "TOKEN={}\nPATH=/bin",
        "<think>the key is {}, so</think>",
        "mcp server {}",
    ],
)
def test_h2_no_field_is_a_way_out(canary: str, place: str) -> None:
    value = {"field": place.format(canary), place.format(canary): 1, "args": [{"v": canary}]}

    assert canary[8:] not in json.dumps(ENGINE.redact(value).value)


@pytest.mark.parametrize("prefix, length", [("sk-test-", 40), ("ghp_", 36), ("sk-proj-", 48)])
def test_h2_a_key_of_letters_alone_is_found(prefix: str, length: int) -> None:
    letters = "".join(chr(ord("aA"[n % 3 == 0]) + n * 11 % 26) for n in range(length))

    assert letters not in ENGINE.text(f"Deploy with {prefix}{letters} please")


def test_h2_an_exception_and_its_causes_are_kept_as_type_and_redacted_text() -> None:
    try:
        try:
            raise ValueError(f"bad key {CANARIES[1]}")
        except ValueError as inner:
            raise RuntimeError(f"HTTPError for url https://h/?key={CANARIES[0]}") from inner
    except RuntimeError as error:
        error.add_note(f"sent {CANARIES[0]}")
        redacted = ENGINE.redact({"error": error}).value["error"]

    assert redacted["type"] == "RuntimeError"
    assert redacted["cause"]["type"] == "ValueError"
    assert redacted["message"].startswith("HTTPError for url https://h/?key=[REDACTED:")
    for canary in CANARIES:
        assert canary[8:] not in json.dumps(redacted)


def test_h2_an_exception_that_names_itself_as_cause_ends() -> None:
    error = RuntimeError("a")
    error.__cause__ = RuntimeError("b")
    error.__cause__.__cause__ = error

    assert ENGINE.redact(error).value["type"] == "RuntimeError"


@pytest.mark.parametrize(
    "text",
    [
        "A" * 1_000_000,
        '{"k": "v", ' * 90_000,
        "a_" * 100_000,
        "QUJDREVGR0hJSktMTU5P" * 50_000,
    ],
    ids=["letters", "open json", "snake", "base64"],
)
def test_h4_large_tool_output_takes_less_than_a_second(text: str) -> None:
    start = time.process_time()

    ENGINE.text(text)

    assert time.process_time() - start < 1.0


@pytest.mark.parametrize("name", GENERATORS)
def test_h4_time_grows_no_faster_than_the_text(name: str) -> None:
    make = GENERATORS[name]

    short, long = _seconds(make(20_000)), _seconds(make(80_000))

    assert long < 1.5
    assert long <= 6 * max(short, 0.02)


def _seconds(text: str) -> float:
    best = 9.0
    for _ in range(2):
        start = time.process_time()
        ENGINE.text(text)
        best = min(best, time.process_time() - start)
    return best

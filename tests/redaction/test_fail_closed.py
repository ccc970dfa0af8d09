"""Whatever goes wrong, the value is withheld; whatever comes in, JSON that PostgreSQL takes goes out."""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import uuid
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from traces.redact import WITHHELD, Engine, engine
from traces.redact.clean import MAX_CHARS

ENGINE = Engine(key=b"closed")
TOKEN = "ghp_" + "a1B2c3D4e5" * 4


def nested(depth: int, leaf: Any) -> Any:
    value = leaf
    for _ in range(depth):
        value = [value]
    return value


class Unreadable:
    def __str__(self) -> str:
        raise RuntimeError(TOKEN)


def test_an_object_that_cannot_be_read_is_withheld() -> None:
    result = ENGINE.redact({"a": Unreadable(), "b": 1})

    assert result.value == {"a": WITHHELD, "b": 1}
    assert result.counts == {"withheld": 1}


def test_a_rule_that_raises_withholds_the_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("traces.redact.value.find_all", lambda text, known: 1 / 0)

    assert ENGINE.redact({"a": f"x {TOKEN}!"}).value["a"] == WITHHELD
    assert ENGINE.text(f"x {TOKEN}!") == WITHHELD


def test_a_value_that_takes_too_long_is_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MAX_SECONDS", -1.0)

    assert ENGINE.redact({"a": TOKEN}).value == WITHHELD
    assert ENGINE.text(f"x {TOKEN}!") == WITHHELD


def test_a_value_with_too_many_parts_is_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("traces.redact.value.MAX_NODES", 100)

    assert ENGINE.redact([TOKEN] * 200).value == WITHHELD


def test_depth_up_to_the_limit_is_read_and_beyond_it_withheld() -> None:
    assert TOKEN not in json.dumps(ENGINE.redact(nested(199, TOKEN)).value)
    assert "github" in json.dumps(ENGINE.redact(nested(199, TOKEN)).value)
    assert WITHHELD in json.dumps(ENGINE.redact(nested(300, TOKEN)).value)
    assert TOKEN not in json.dumps(ENGINE.redact(nested(900, TOKEN)).value)


def test_a_cycle_is_withheld_where_it_closes() -> None:
    value: dict[str, Any] = {"token": TOKEN}
    value["self"] = value

    assert ENGINE.redact(value).value["self"] == WITHHELD


def test_the_same_object_twice_is_no_cycle() -> None:
    part = {"n": 1}

    assert ENGINE.redact([part, part]).value == [{"n": 1}, {"n": 1}]


def test_names_bytes_and_tuples_are_read() -> None:
    result = ENGINE.redact({TOKEN: 1, b"k": f"x {TOKEN}".encode(), 3: ("a", TOKEN), None: {TOKEN}})

    assert "a1B2c3" not in json.dumps(result.value)
    assert list(result.value)[1:] == ["k", "3", "null"]
    assert result.counts == {"github": 4}


def test_two_names_that_become_the_same_are_both_kept() -> None:
    result = ENGINE.redact({"a@x.test": 1, "b@x.test": 2})

    assert list(result.value.values()) == [1, 2]


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Login:
    user: str
    password: str


def test_other_kinds_become_json() -> None:
    result = ENGINE.redact(
        {
            "when": datetime(2026, 1, 2, tzinfo=UTC),
            "id": uuid.UUID(int=5),
            "sum": Decimal("1.50"),
            "colour": Colour.RED,
            "login": Login("bob", "hunter2zebra"),
            "nan": math.nan,
            "inf": -math.inf,
            "huge": 10**5_000,
            "set": {2, 1},
        }
    )

    json.dumps(result.value, allow_nan=False)
    assert result.value["sum"] == "1.50"
    assert result.value["colour"] == "red"
    assert result.value["login"]["user"] == "bob"
    assert "hunter2zebra" not in str(result.value)
    assert result.value["set"] == [1, 2]


def test_nul_and_lone_surrogates_are_made_visible() -> None:
    result = ENGINE.redact({"k\x00": "v\x00\ud800", "raw": b"a\x00b", "text": r"stays \u0000"})

    written = json.dumps(result.value, ensure_ascii=False)
    written.encode("utf-8")
    assert result.value["k\u2400"] == "v\u2400\ufffd"
    assert result.value["raw"] == "a\u2400b"
    assert result.value["text"] == r"stays \u0000"


def test_a_long_string_keeps_head_and_tail_and_says_what_is_missing() -> None:
    text = "head " + "word " * 400_000 + "tail"

    shown = ENGINE.text(text)

    assert len(shown) <= MAX_CHARS
    assert shown.startswith("head")
    assert shown.endswith("tail")
    assert "characters dropped" in shown


def test_a_secret_cut_by_the_limit_does_not_leave_its_half() -> None:
    text = "word " * 139_996 + TOKEN + " word" * 400_000

    assert "a1B2c3D4e5" not in ENGINE.text(text)


def test_counts_never_hold_text() -> None:
    result = ENGINE.redact({"password": "hunter2zebra", "mail": "a@x.test"})

    assert result.counts == {"password": 1, "email": 1}

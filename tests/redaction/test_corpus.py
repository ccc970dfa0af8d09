"""The figures the engine has to reach on the development corpus and on our own rows."""

from __future__ import annotations

import json
import re

import pytest

from tests.redaction import transcripts
from tests.redaction.corpus import is_changed, leaks, load_rows, redact_row, survives
from tests.redaction.generality import NEGATIVES, POSITIVES
from traces.redact import Engine

ENGINE = Engine(key=b"corpus")
PERSONAL = {"email", "credit_card", "iban", "ssn", "phone", "cn_id"}
_MARKER = re.compile(r"\[REDACTED:[a-z0-9_]+(?:#[0-9a-f]{4})?\]")
_VENDOR = re.compile(r"[\w.:~-]{20,300}")


def test_it_finds_the_secrets_of_the_corpus() -> None:
    rows = [row for row in load_rows() if row["label"]]

    missed = [row["id"] for row in rows if leaks(row, redact_row(ENGINE, row))]

    assert len(missed) <= 0.03 * len(rows), missed


def test_every_kind_of_personal_number_is_found() -> None:
    rows = [row for row in load_rows() if row["kind"] in PERSONAL]

    missed = [row["id"] for row in rows if leaks(row, redact_row(ENGINE, row))]

    assert missed == []


def test_harmless_rows_come_out_unchanged() -> None:
    rows = [row for row in load_rows() if not row["label"]]

    changed = [row["id"] for row in rows if is_changed(row, redact_row(ENGINE, row))]

    assert len(changed) <= 0.01 * len(rows), changed


def test_little_harmless_text_goes_with_the_secrets() -> None:
    rows = [row for row in load_rows() if row["label"] and "obj" not in row]
    harmless = sum(len(row["text"]) - sum(map(len, row["secrets"])) for row in rows)
    kept = sum(len(_MARKER.sub("", redact_row(ENGINE, row))) for row in rows)

    assert harmless - kept <= 0.03 * harmless


@pytest.mark.parametrize(
    "context",
    [
        "I tried {} and got a 401.",
        '{{"args": ["deploy", "{}"], "n": 1}}',
        "-  - {}\n+  - removed",
        '{{"stdout": "step 1\\n{}\\nstep 2"}}',
        "({}).",
        "使用 {} 调用接口失败",
    ],
)
def test_vendor_tokens_are_found_wherever_they_stand(context: str) -> None:
    tokens = [
        (row["kind"], row["secrets"][0])
        for row in load_rows()
        if row["label"] and row["id"] < "P0145" and _VENDOR.fullmatch(row["secrets"][0])
    ]
    tokens = [token for token in tokens if token[0] not in ("aws_secret_key", "aws_session_token")]

    missed = [kind for kind, token in tokens if survives(token, ENGINE.text(context.format(token)))]

    assert len(tokens) > 50
    assert missed == []


def test_it_finds_kinds_the_corpus_has_little_of() -> None:
    missed = [
        (kind, text)
        for kind, text, secrets in POSITIVES
        if any(survives(secret, ENGINE.text(text)) for secret in secrets)
    ]

    assert len(missed) <= 0.03 * len(POSITIVES), missed


def test_it_leaves_tool_output_names_ids_and_placeholders_alone() -> None:
    changed = [(kind, text) for kind, text in NEGATIVES if ENGINE.text(text) != text]

    assert len(changed) <= 0.01 * len(NEGATIVES), changed


def test_redacting_twice_changes_nothing_more() -> None:
    for _, text, _ in POSITIVES:
        once = ENGINE.text(text)

        assert ENGINE.text(once) == once


def test_the_same_secret_gets_the_same_marker_and_another_key_another_one() -> None:
    token = "ghp_" + "a1B2c3D4e5" * 4

    first, second = _MARKER.findall(ENGINE.text(f"{token} and {token}"))
    other = Engine(key=b"other").text(token)

    assert first == second
    assert other != first
    assert json.dumps(other)


def test_texts_as_agents_meet_them() -> None:
    missed = [
        t for t, secrets in transcripts.POSITIVES if any(s in ENGINE.text(t) for s in secrets)
    ]
    changed = [t for t in transcripts.NEGATIVES if ENGINE.text(t) != t]

    assert len(missed) <= 0.05 * len(transcripts.POSITIVES), missed
    assert changed == []


_VALUES = [f"Kx{n}7pQ{n}zz!" for n in range(40)]
LONG_COLUMNS = [
    "Here it is:\n\n| n | pw | what it is for |\n|---|:--|---|\n"
    + "".join(f"| {n} | {value} | the account number {n} |\n" for n, value in enumerate(_VALUES))
    + "\nThat is all of it.",
    "id,password,note\n"
    + "".join(f"{n},{value},fine\n" for n, value in enumerate(_VALUES))
    + "end",
    "INSERT INTO users (id, password) VALUES "  # noqa: S608
    + ", ".join(f"({n}, '{value}')" for n, value in enumerate(_VALUES))
    + ";\nSELECT 1;",
]


def test_no_value_of_a_long_column_is_left() -> None:
    for text in LONG_COLUMNS:
        shown = ENGINE.text(text)
        assert [value for value in _VALUES if value in shown] == []
        assert shown.count("[REDACTED:password") == len(_VALUES)


@pytest.mark.parametrize("size", [1, 3, 17, 200])
def test_columns_come_out_of_a_stream_as_out_of_the_whole(size: int) -> None:
    for text in [*(text for text, _ in transcripts.POSITIVES), *LONG_COLUMNS]:
        stream = ENGINE.stream()
        pieces = [text[n : n + size] for n in range(0, len(text), size)]
        assert "".join(map(stream.feed, pieces)) + stream.end() == ENGINE.text(text)


def test_what_stands_below_the_name_of_a_secret_goes_and_its_neighbours_stay() -> None:
    rows = "id,login,api_key,note\n1,ann,q8Hk2Lp9Qw3E,fine\n2,bo,none,x\n\nand more, text, here, q8Hk2Lp9Qw3E"
    shown = ENGINE.text(rows)
    assert shown.startswith("id,login,api_key,note\n1,ann,[REDACTED:api_key")
    assert ",fine\n2,bo,none,x\n" in shown
    table = "| step | password |\n|---|---|\n| 1 | must be changed |\n| 2 | Kx81-pPq0 |\n"
    assert "must be changed" in ENGINE.text(table) and "Kx81" not in ENGINE.text(table)
    insert = "INSERT INTO u (id, pwd) VALUES (1, 'a''b9Zq7!x'), (2, 'Qx77rTz1');"
    assert "b9Zq7" not in ENGINE.text(insert) and "Qx77" not in ENGINE.text(insert)

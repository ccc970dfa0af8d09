"""A deployment's own rules: linear, bounded, behind the engine, and the same in a stream as on the whole."""

from __future__ import annotations

import random
import time

import pytest

from traces.redact import Engine
from traces.redact.marker import Marker
from traces.redact.rules import (
    Applied,
    RuleError,
    Rules,
    RuleStream,
    compile_allowed,
    compile_key,
    compile_text,
)

ENGINE = Engine(key=b"rules")
KEY, KEY_TEXT = compile_key("employee*", "employee")
RULES = Rules(
    texts=(
        compile_text(r"\bEMP-\d{4,8}\b", "staff_no"),
        compile_text(r"(?i)project\s{1,3}[a-z]{3,12}", "project"),
        KEY_TEXT,
    ),
    keys=(KEY,),
)
APPLIED = Applied(RULES, Marker(b"rules"))
TEXTS = [
    "EMP-1234 asked EMP-99 and EMP-12345678 about Project  Aurora.",
    "employee_id: 77-A, employeeName='Ann Lee', other: 5 (EMP-4444EMP-5555)",
    "token ghp_" + "a1B2" * 9 + " belongs to EMP-7777 of project zephyr\nemployee = x",
    '{"employee": {"deep": [1]}, "note": "EMP-2222"} EMP-3333',
    "[REDACTED:github#7f3a] project [REDACTED:known] EMP-0000",
    "é project ünder EMP-1234é project abc",
    "",
]


def whole(text: str) -> str:
    return APPLIED.text(ENGINE.text(text))


def streamed(pieces: list[str]) -> str:
    stream = RuleStream(ENGINE.stream(), APPLIED)
    return "".join(map(stream.feed, pieces)) + stream.end()


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(", "compile"),
        (".*", "empty"),
        ("x*", "empty"),
        ("(a+)+$", "1 characters"),
        ("(?:a|aa)+$", "1 characters"),
        (r"\d", "everywhere"),
        ("[a-z]{3,}", "at most 256"),
        ("a" * 501, "501"),
        (r"abc\1", "compile"),
        ("(?=abc)def", "compile"),
    ],
)
def test_h4_a_rule_that_cannot_be_bounded_is_refused_with_the_reason(
    pattern: str, why: str
) -> None:
    with pytest.raises(RuleError, match=why):
        compile_text(pattern, "x")


@pytest.mark.parametrize("name", ["*", "", "a" * 65, "x|y", "(a)"])
def test_a_key_name_is_a_name(name: str) -> None:
    with pytest.raises(RuleError):
        compile_key(name, "x")


def test_what_matches_goes_and_the_rest_stays() -> None:
    found = [whole(text) for text in TEXTS]
    assert found[0].startswith("[REDACTED:staff_no] asked EMP-99 and [REDACTED:staff_no#")
    assert found[0].endswith("about [REDACTED:project#" + found[0][-6:])
    assert "77-A" not in found[1] and "Ann Lee" not in found[1] and "other: 5" in found[1]
    assert "employee_id: [REDACTED:employee]" in found[1], "the name itself stays"
    assert "R7kq2Lm" not in found[2]
    assert found[4] == "[REDACTED:github#7f3a] project [REDACTED:known] [REDACTED:staff_no]"


def test_structure_keeps_its_shape() -> None:
    counts: dict[str, int] = {}
    value = {
        "employee": {"deep": [1]},
        "a": ["EMP-1234", None, True, 7],
        "employees": None,
        "EMP-9999": 1,
        "text": '{"employee": "Bo", "b": 1}',
    }
    shown = APPLIED.value(value, counts)
    assert shown["employee"].startswith("[REDACTED:employee")
    assert shown["a"] == ["[REDACTED:staff_no]", None, True, 7]
    assert shown["employees"] is None and shown["[REDACTED:staff_no]"] == 1
    assert shown["text"] == '{"employee": "[REDACTED:employee]", "b": 1}'
    assert counts == {"employee": 2, "staff_no": 2}


def test_a_stream_is_what_the_whole_is_at_every_cut() -> None:
    for text in TEXTS:
        expected = whole(text)
        assert streamed(list(text)) == expected
        for cut in range(len(text)):
            assert streamed([text[:cut], text[cut:]]) == expected, (text, cut)
    rnd = random.Random(5)
    text = " ".join(rnd.choice(TEXTS) for _ in range(60))
    for _ in range(10):
        cuts = sorted(rnd.sample(range(len(text)), 40))
        pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        assert streamed(pieces) == whole(text)


def test_a_stream_holds_back_no_more_than_its_widest_rule_needs() -> None:
    stream = RuleStream(ENGINE.stream(), APPLIED)
    prose = "The run finished, and the plan is to look at the warnings with the team. " * 40
    held = []
    for start in range(0, len(prose), 7):
        stream.feed(prose[start : start + 7])
        held.append(stream.held)
    assert max(held) <= RULES.width + 64 < 400


def test_h4_time_grows_with_the_text() -> None:
    hostile = Applied(
        Rules(
            texts=(
                compile_text(r"(?:a|a|aa){3,60}b", "x"),
                compile_text(r"(?:\w{1,8}-){1,20}x", "y"),
            )
        ),
        Marker(b"k"),
    )

    def seconds(number: int) -> float:
        text = "a" * number + "a-" * number
        began = time.process_time()
        hostile.text(text)
        return time.process_time() - began

    seconds(1_000)
    assert seconds(80_000) / max(seconds(20_000), 1e-3) <= 6


def test_people_may_stay_where_allowed_and_secrets_never() -> None:
    rules = Rules(
        allowed=(
            compile_allowed(r"[a-z.]{1,30}@example\.org"),
            compile_allowed(r"ghp_\w{1,60}"),
            compile_allowed(r".{3,200}"),
        )
    )
    engine = ENGINE.with_allowed(rules.allows)
    token = "ghp_R7kq2LmZ0vXyT4bNs8WdPc1Hf6JuEa9Gi5Mo"
    assert engine.text("write to ann@example.org") == "write to ann@example.org"
    assert ENGINE.text("write to ann@example.org") != "write to ann@example.org"
    for text in (
        f"use {token}",
        f"password: hunter2-{token}",
        f'{{"password": "{token}@example.org"}}',
    ):
        assert token not in engine.text(text)
        assert token not in str(engine.redact({"a": text}).value)
        stream = engine.stream()
        assert token not in stream.feed(text) + stream.end()
    assert engine.redact({"phone": 4915112345678}).value == {"phone": 4915112345678}

"""A model's words become arguments strictly or not at all."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime_core.errors import InvalidArguments
from runtime_core.limits import limits
from runtime_core.tools import ToolContext, tool
from runtime_core.tools.schema import parse


@tool(risk="low", effect="read")
def written(ctx: ToolContext, path: str, content: str = "", n: int = 0, on: bool = False) -> None:
    """Text."""


_F2 = {
    "empty": "",
    "blank": " \n",
    "null": "null",
    "text": '"foo"',
    "array": "[1]",
    "number": "1",
    "cut off": '{"path":"a"',
    "two objects": '{"path":"a"}{"path":"b"}',
    "trailing comma": '{"path":"a",}',
    "single quotes": "{'path':1}",
    "raw newline": '{"path":"a","content":"a\nb"}',
    "NUL behind": '{"path":"a"}\x00',
    "NUL inside": '{"path":"a\\u0000b"}',
    "half a surrogate": '{"path":"a\\ud800"}',
    "five megabytes": json.dumps({"path": "a" * 5_000_000}),
    "ten thousand deep": '{"path":' + "[" * 10_000 + "]" * 10_000 + "}",
    "ten thousand deep, cut off": '{"path":' + "[" * 10_000,
    "a key twice": '{"path":"a","path":"b"}',
    "a key twice, deep": '{"path":"a","content":{"x":1,"x":1}}',
    "NaN": '{"path":"a","n":NaN}',
    "infinity": '{"path":"a","n":1e999}',
    "a number of 10,000 digits": '{"path":"a","n":' + "1" * 10_000 + "}",
    "extra key": '{"path":"a","mode":"w"}',
    "missing key": "{}",
    "text for a number": '{"path":"a","n":"1"}',
    "fraction for a whole number": '{"path":"a","n":1.0}',
    "number for a text": '{"path":1}',
    "number for a boolean": '{"path":"a","on":1}',
    "null for a text": '{"path":null}',
    "comment": '{"path":"a"} // yes',
    "fenced": '```json\n{"path":"a"}\n```',
    "byte order mark": '\ufeff{"path":"a"}',
}


@pytest.mark.parametrize("text", _F2.values(), ids=_F2.keys())
def test_f2_what_is_not_exactly_right_is_refused(text: str) -> None:
    with pytest.raises(InvalidArguments) as refused:
        parse(written, text)
    message = refused.value.message
    assert "nothing was run" in message
    assert len(message) < 1_500
    assert len(str(refused.value.data.get("args", ""))) < 400
    message.encode()  # can be stored and sent


def test_it_names_the_argument_that_is_wrong() -> None:
    with pytest.raises(InvalidArguments, match="n: Input should be a valid integer"):
        parse(written, '{"path":"a","n":"1"}')


def test_what_is_right_is_kept_as_it_was_written() -> None:
    text = '{"path": "a", "content": "é \\ud83d\\ude00 \\\\u0000 \\n", "n": 5}'
    assert parse(written, text) == {"path": "a", "content": "é 😀 \\u0000 \n", "n": 5}


def test_brackets_in_texts_are_no_depth() -> None:
    content = '[{"' * 1_000
    assert parse(written, json.dumps({"path": "a", "content": content}))["content"] == content


def test_depth_up_to_the_limit_is_read() -> None:
    deep = limits().tool_args_depth - 1
    with pytest.raises(InvalidArguments, match="Input should be a valid string"):
        parse(written, '{"path":' + "[" * deep + "]" * deep + "}")


@given(st.text(max_size=200))
def test_no_text_raises_anything_else(text: str) -> None:
    with suppress(InvalidArguments):
        assert isinstance(parse(written, text), dict)


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), st.integers())
def test_every_fitting_object_comes_through(path: str, n: int) -> None:
    args = {"path": path, "n": n}
    assert parse(written, json.dumps(args)) == args

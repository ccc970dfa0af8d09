"""Case F1: streamed tool calls never melt into one, however the server numbers their pieces."""

from __future__ import annotations

from typing import Any

import pytest

from runtime_core.errors import ModelProtocolError
from runtime_core.values import ProposedCall
from tests.gateway.conftest import ask, call
from tests.gateway.provider import Provider, stream, tool_delta

A = ProposedCall("a", "read", '{"path":"a"}')
B = ProposedCall("b", "read", '{"path":"b"}')
NULL = object()


def piece(
    index: Any = NULL, call_id: str | None = None, name: str | None = None, args: str | None = None
) -> Any:
    """One piece of a call; an index of NULL leaves it out, None sends null."""
    made: dict[str, Any] = {} if index is NULL else {"index": index}
    if call_id is not None:
        made["id"] = call_id
    made["function"] = {
        key: value for key, value in {"name": name, "arguments": args}.items() if value is not None
    }
    return made


def whole(call_id: str, index: Any = NULL) -> Any:
    return piece(index, call_id, "read", f'{{"path":"{call_id}"}}')


SEQUENCES: dict[str, list[list[Any]]] = {
    "constant index": [[whole("a", 0)], [whole("b", 0)]],
    "no index": [[whole("a")], [whole("b")]],
    "null index": [[whole("a", None)], [whole("b", None)]],
    "one chunk holds both": [[whole("a", 0), whole("b", 1)]],
    "one chunk holds both at one index": [[whole("a", 0), whole("b", 0)]],
    "one chunk holds both without index": [[whole("a"), whole("b")]],
    "interleaved, ids only in the first": [
        [piece(0, "a", "read", "")],
        [piece(1, "b", "read", "")],
        [piece(0, args='{"path"')],
        [piece(1, args='{"path"')],
        [piece(0, args=':"a"}')],
        [piece(1, args=':"b"}')],
    ],
    "interleaved in one chunk without index": [
        [piece(NULL, "a", "read"), piece(NULL, "b", "read")],
        [piece(args='{"path":"a"'), piece(args='{"path":"b"')],
        [piece(args="}"), piece(args="}")],
    ],
    "id in every chunk": [
        [piece(0, "a", "read", '{"path"')],
        [piece(0, "a", args=':"a"}')],
        [piece(1, "b", "read", '{"path"')],
        [piece(1, "b", args=':"b"}')],
    ],
    "id and name in every chunk, constant index, interleaved": [
        [piece(0, "a", "read", "")],
        [piece(0, "b", "read", "")],
        [piece(0, "a", "read", '{"path"')],
        [piece(0, "b", "read", '{"path"')],
        [piece(0, "a", "read", ':"a"}')],
        [piece(0, "b", "read", ':"b"}')],
    ],
    "id in every chunk, no index": [
        [piece(NULL, "a", "read", '{"path"')],
        [piece(NULL, "a", args=':"a"}')],
        [piece(NULL, "b", "read", '{"path"')],
        [piece(NULL, "b", args=':"b"}')],
    ],
    "pieces without index go to the last open call": [
        [piece(NULL, "a", "read", '{"path"')],
        [piece(args=':"a"}')],
        [piece(NULL, "b", "read", '{"path"')],
        [piece(args=':"b"}')],
    ],
    "name split over two chunks": [
        [piece(0, "a", "re", "")],
        [piece(0, name="ad", args="")],
        [piece(0, args='{"path":"a"}')],
        [piece(1, "b", "re")],
        [piece(1, name="ad")],
        [piece(1, args='{"path":"b"}')],
    ],
    "id after the name": [
        [piece(0, name="read")],
        [piece(0, "a", args='{"path":"a"}')],
        [piece(1, name="read")],
        [piece(1, "b", args='{"path":"b"}')],
    ],
    "index that starts at one": [[whole("a", 1)], [whole("b", 2)]],
}


@pytest.mark.parametrize("chunks", SEQUENCES.values(), ids=SEQUENCES.keys())
def test_f1_streamed_calls_keep_their_own_arguments(
    provider: Provider, chunks: list[list[Any]]
) -> None:
    provider.then(stream([tool_delta(*pieces) for pieces in chunks], "tool_calls"))

    _, answer = ask(call())

    assert answer.calls == (A, B)


def test_f1_calls_without_any_id_get_one_each(provider: Provider) -> None:
    pieces = [
        piece(0, name="read", args='{"path":"a"}'),
        piece(0, name="read", args='{"path":"b"}'),
    ]
    provider.then(stream([tool_delta(p) for p in pieces], "tool_calls"))

    _, answer = ask(call())

    assert [c.args_text for c in answer.calls] == [A.args_text, B.args_text]
    assert len({c.call_id for c in answer.calls if c.call_id}) == 2


AMBIGUOUS: dict[str, list[list[Any]]] = {
    "one id for two calls": [[whole("a", 0)], [whole("a", 1)]],
    "one id for two calls without index": [[whole("a")], [whole("a")]],
    "interleaved with one index and no ids": [
        [piece(0, "a", "read", '{"path"')],
        [piece(0, "b", "read", '{"path"')],
        [piece(0, args=':"a"}')],
        [piece(0, args=':"b"}')],
    ],
    "interleaved with nothing to go by": [
        [piece(NULL, "a", "read", '{"path"')],
        [piece(NULL, "b", "read", '{"path"')],
        [piece(args=':"a"}')],
        [piece(args=':"b"}')],
    ],
    "another name inside the arguments": [
        [piece(0, "a", "read", '{"path"')],
        [piece(0, name="write", args=':"b"}')],
    ],
    "no name at all": [[piece(0, "a", args="{}")]],
    "arguments that are no text": [
        [{"index": 0, "id": "a", "function": {"name": "read", "arguments": {"p": 1}}}]
    ],
    "pieces that are no list": [],
}


@pytest.mark.parametrize("chunks", AMBIGUOUS.values(), ids=AMBIGUOUS.keys())
def test_f1_what_cannot_be_told_apart_is_an_error(
    provider: Provider, chunks: list[list[Any]]
) -> None:
    deltas = [tool_delta(*pieces) for pieces in chunks] or [{"tool_calls": {"0": whole("a")}}]
    provider.then(stream(deltas, "tool_calls"))

    with pytest.raises(ModelProtocolError):
        ask(call())


def test_f1_announced_calls_that_never_come_are_an_error(provider: Provider) -> None:
    provider.then(stream([{"content": "Reading."}], "tool_calls"))

    with pytest.raises(ModelProtocolError, match="held none"):
        ask(call())

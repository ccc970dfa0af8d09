"""For any value: no planted secret comes out, the shape stays, the result is JSON."""

from __future__ import annotations

import itertools
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.redaction.test_cases import shape
from traces.redact import Engine

PLANTED = "ghp_" + "Zk3vQ1hJt3Yw" * 3
KNOWN = "moss/Lantern 77"
ENGINE = Engine(key=b"properties", known_values=[KNOWN])

_PLAIN = st.text(alphabet=st.characters(blacklist_categories=()), max_size=30)
_LEAF = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), _PLAIN)
_WITH_SECRET = st.builds(
    lambda before, secret, after: f"{before} {secret} {after}",
    _PLAIN,
    st.sampled_from([PLANTED, KNOWN]),
    _PLAIN,
)
_VALUE: st.SearchStrategy[Any] = st.recursive(
    st.one_of(_LEAF, _WITH_SECRET),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(_PLAIN | _WITH_SECRET, inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(_VALUE)
def test_a_planted_secret_never_comes_out(value: Any) -> None:
    written = json.dumps(ENGINE.redact(value).value, ensure_ascii=False, allow_nan=False)

    assert PLANTED[4:] not in written
    assert KNOWN not in written
    assert "\\u0000" not in written
    written.encode("utf-8")


@settings(max_examples=150, deadline=None)
@given(_VALUE)
def test_the_shape_stays(value: Any) -> None:
    redacted = ENGINE.redact(value).value

    assert _outline(shape(redacted)) == _outline(shape(value))


@settings(max_examples=100, deadline=None)
@given(st.lists(_PLAIN | _WITH_SECRET, max_size=5), st.data())
def test_pieces_give_the_same_text_as_the_whole(parts: list[str], data: st.DataObject) -> None:
    text = " ".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    stream = ENGINE.stream()

    places = [0, *cuts, len(text)]
    shown = "".join(stream.feed(text[a:b]) for a, b in itertools.pairwise(places))

    assert shown + stream.end() == ENGINE.text(text)


def _outline(value: Any) -> Any:
    """The nesting alone: names may be redacted too."""
    if isinstance(value, dict):
        return ("object", [_outline(item) for item in value.values()])
    return ("array", [_outline(item) for item in value]) if isinstance(value, list) else None

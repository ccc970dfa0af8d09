"""Long rows of siblings are folded in the middle, and nothing that must be seen is."""

from __future__ import annotations

from tests.traces.test_span_tree import Fake
from traces.shown.siblings import FIRST, LAST, More, folded
from traces.shown.span_tree import Node, lay_out


def shape(spans: list[Fake], must: int = 0) -> list[int | str]:
    def must_show(node: Node) -> bool:
        return node.span.id.int == must

    return [
        f"{item.siblings}/{item.spans}" if isinstance(item, More) else item.span.id.int
        for item in folded(lay_out(spans), must_show)
    ]


def test_few_siblings_stay() -> None:
    spans = [Fake(1), *(Fake(n, parent=1) for n in range(2, 52))]

    assert shape(spans) == list(range(1, 52))


def test_many_are_cut_in_the_middle_with_all_below_them() -> None:
    spans = [Fake(1), *(Fake(n, parent=1) for n in range(100, 200))]
    spans += [Fake(n + 1000, parent=n) for n in range(100, 200)]

    found = shape(spans)

    assert found.count("65/130") == 1
    assert len(found) == 1 + 2 * (FIRST + LAST) + 1
    assert found[1:3] == [100, 1100]
    assert found[-2:] == [199, 1199]


def test_what_must_be_seen_is_never_cut_however_deep() -> None:
    spans = [Fake(1), *(Fake(n, parent=1) for n in range(100, 200)), Fake(5, parent=150)]

    found = shape(spans, must=5)

    at = found.index(150)
    assert found[at - 1 : at + 3] == ["25/25", 150, 5, "39/39"]


def test_roots_and_what_is_below_two_parents_are_counted_apart() -> None:
    spans = [Fake(n) for n in range(1, 101)]
    inner = [Fake(n, parent=1) for n in range(200, 260)]

    assert shape(spans).count("65/65") == 1
    assert shape([Fake(1), Fake(2), *inner]).count("25/25") == 1

"""The span tree and its scale: every span once, whatever order they came in."""

from __future__ import annotations

import datetime as dt
import time
import uuid
from dataclasses import dataclass, field

from traces.shown.span_tree import lay_out
from traces.shown.timescale import IDLE_SHARE, Timescale

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def at(seconds: float) -> dt.datetime:
    return START + dt.timedelta(seconds=seconds)


@dataclass
class Fake:
    number: int
    parent: int | None = None
    kind: str = "tool"
    status: str = "ok"
    epoch: int = 0
    started_at: dt.datetime = START
    ended_at: dt.datetime | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cost_microusd: int = 0
    id: uuid.UUID = field(init=False)
    parent_id: uuid.UUID | None = field(init=False)

    def __post_init__(self) -> None:
        self.id = uuid.UUID(int=self.number)
        self.parent_id = None if self.parent is None else uuid.UUID(int=self.parent)


def shape(*spans: Fake) -> list[tuple[int, int, str]]:
    return [(node.span.id.int, node.depth, node.mark) for node in lay_out(spans)]


def test_h8_a_child_before_its_parent_hangs_on_it() -> None:
    assert shape(Fake(2, parent=1), Fake(1)) == [(1, 0, ""), (2, 1, "")]


def test_h8_without_its_parent_it_is_shown_unattached() -> None:
    assert shape(Fake(1), Fake(3, parent=9), Fake(4, parent=3)) == [
        (1, 0, ""), (3, 0, "orphan"), (4, 1, ""),
    ]  # fmt: skip


def test_h8_a_cycle_ends() -> None:
    assert shape(Fake(1, parent=3), Fake(2, parent=1), Fake(3, parent=2), Fake(5, parent=5)) == [
        (1, 0, "cycle"), (2, 1, ""), (3, 2, ""), (5, 0, "cycle"),
    ]  # fmt: skip


def test_h8_the_same_id_twice_is_one_span() -> None:
    assert shape(Fake(1), Fake(1), Fake(2, parent=1)) == [(1, 0, ""), (2, 1, "")]


def test_h8_an_end_before_the_start_is_marked() -> None:
    [node] = lay_out([Fake(1, started_at=at(5), ended_at=at(2))])

    assert node.backwards


def test_h8_a_chain_of_five_hundred_and_twenty_thousand_siblings() -> None:
    chain = [Fake(n, parent=n - 1 if n else None) for n in range(500)]
    siblings = [Fake(1_000 + n, parent=0) for n in range(20_000)]
    began = time.monotonic()

    nodes = lay_out([*chain, *siblings])

    assert time.monotonic() - began < 3
    assert len({node.span.id for node in nodes}) == len(nodes) == 20_500
    assert max(node.depth for node in nodes) == 499
    assert max(node.shown_depth for node in nodes) == 8


def test_h8_usage_of_a_parent_is_its_own_and_that_of_its_children() -> None:
    nodes = lay_out(
        [
            Fake(1, kind="run", input_tokens=999),  # what a parent repeats does not count
            *(Fake(n, parent=1, kind="step") for n in (2, 3, 4)),
            *(
                Fake(10 + n, parent=n, kind="llm", input_tokens=n, output_tokens=1)
                for n in (2, 3, 4)
            ),
            Fake(20, parent=1, kind="llm", input_tokens=100),
        ]
    )

    tokens = {node.span.id.int: node.tokens for node in nodes}
    assert tokens[1] == 100 + (2 + 3 + 4) + 3
    assert (tokens[2], tokens[3], tokens[4]) == (3, 4, 5)


def test_bars_are_in_proportion() -> None:
    scale = Timescale([(at(0), at(10)), (at(2), at(4))], [], at(10))

    assert scale.place(at(0), at(10)) == (0, 100)
    assert scale.place(at(2), at(4)) == (20, 20)
    assert scale.place(at(5), None) == (50, 50)
    assert not scale.is_shortened


def test_an_hour_before_a_person_leaves_room_for_the_work() -> None:
    scale = Timescale([(at(0), at(3_610))], [(at(5), at(3_605))], at(3_610))

    x, width = scale.place(at(5), at(3_605))
    assert scale.is_shortened
    assert round(width) == round(100 * IDLE_SHARE)
    assert round(x, 1) == round(100 * (1 - IDLE_SHARE) / 2, 1)
    assert sum(scale.place(at(3_605), at(3_610))) == 100


def test_a_scale_of_nothing_and_of_nothing_but_waiting() -> None:
    assert Timescale([], [], at(0)).place(at(0), None)[0] == 0
    assert Timescale([(at(0), at(5))], [(at(0), None)], at(5)).place(at(0), None) == (0, 100)
    assert Timescale([(at(5), at(2))], [], at(9)).place(at(5), at(2))[1] == 0

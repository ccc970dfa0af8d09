"""Text that arrives in pieces comes out as if it had come whole, and not much later."""

from __future__ import annotations

import itertools
import random
import statistics

import pytest

from tests.redaction.corpus import leaks, load_rows
from tests.redaction.generality import NEGATIVES, POSITIVES
from traces.redact import WITHHELD, Engine

ENGINE = Engine(key=b"stream", known_values=["correct horse battery staple"])
PROSE = (
    "The run finished in three steps. First the agent listed the files in the workspace and read "
    "the settings, then it asked for approval before it wrote the report, and at the end it "
    "answered that all checks were green. Nothing else was changed, and the plan for tomorrow is "
    "to look at the remaining warnings together with the team. "
)


def streamed(text: str, cuts: list[int]) -> str:
    stream = ENGINE.stream()
    places = [0, *cuts, len(text)]
    pieces = [text[a:b] for a, b in itertools.pairwise(places)]
    return "".join(stream.feed(piece) for piece in pieces) + stream.end()


def test_every_single_cut_of_every_short_row_gives_the_same_text() -> None:
    for row in load_rows():
        text = row["text"]
        if len(text) >= 200:
            continue
        whole = ENGINE.text(text)
        for cut in range(1, len(text)):
            assert streamed(text, [cut]) == whole, (row["id"], cut)


def test_single_characters_give_the_same_text() -> None:
    texts = [row["text"] for row in load_rows() if len(row["text"]) < 200]
    texts += [text for _, text, _ in POSITIVES] + [text for _, text in NEGATIVES]

    for text in texts:
        assert streamed(text, list(range(1, len(text)))) == ENGINE.text(text)


def test_random_cuts_of_long_rows_give_the_same_text() -> None:
    dice = random.Random(7)
    rows = [row["text"] for row in load_rows() if 200 <= len(row["text"]) < 4_000]
    rows += [PROSE + text + " " + PROSE for _, text, _ in POSITIVES if text[0] not in "[{"]

    for text in rows:
        cuts = sorted(dice.sample(range(1, len(text)), min(9, len(text) - 1)))
        assert streamed(text, cuts) == ENGINE.text(text)


def test_no_piece_of_a_streamed_secret_gets_out() -> None:
    for row in load_rows():
        if row["label"] and "chunks" in row:
            stream = ENGINE.stream()
            shown = "".join(stream.feed(chunk) for chunk in row["chunks"]) + stream.end()

            assert leaks(row, shown) == []


def test_a_known_value_with_blanks_is_held_until_it_is_whole() -> None:
    shown = streamed("say correct horse battery staple now", [5, 9, 15, 22, 29])

    assert "horse" not in shown
    assert shown.startswith("say ")
    assert shown.endswith(" now")


def test_prose_is_not_held_back_long() -> None:
    stream = ENGINE.stream()
    held = []
    for start in range(0, len(PROSE) * 4, 5):
        stream.feed((PROSE * 4)[start : start + 5])
        held.append(stream.held)

    assert statistics.median(held) <= 64


def test_a_json_answer_is_given_out_when_it_is_whole() -> None:
    stream = ENGINE.stream()

    assert stream.feed('{"secrets": {"alpha": ') == ""
    shown = stream.feed('"4815162342x"}} and more')

    assert "4815162342x" not in shown
    assert shown.startswith('{"secrets"')


def test_what_only_looked_like_json_is_text() -> None:
    text = '{"a": oh no, password = hunter2zebra and [so on'

    assert streamed(text, [3, 8, 20]) == ENGINE.text(text)
    assert "hunter2zebra" not in ENGINE.text(text)


def test_held_text_is_bounded() -> None:
    stream = ENGINE.stream()
    for _ in range(200):
        stream.feed("x" * 1_000)

    assert stream.held <= 40_000


def test_an_endless_key_never_gets_out() -> None:
    stream = ENGINE.stream()
    shown = stream.feed("-----BEGIN RSA PRIVATE KEY-----\n")
    for _ in range(600):
        shown += stream.feed("Zk3vQ1hJt3YwXb0NnS5rLq7uEoPaGd2cVfMiTyRjHk8Zk3vQ1hJt3YwXb0NnS5r\n")
    shown += stream.end()

    assert shown.count("Zk3vQ1hJt3Yw") <= 120


def test_a_failing_stream_shows_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = ENGINE.stream()
    monkeypatch.setattr(ENGINE, "spans", lambda text: 1 / 0)

    shown = stream.feed("a b c d e f g h hunter2 " * 3)

    assert shown == WITHHELD
    assert stream.feed("more") == ""
    assert stream.end() == ""

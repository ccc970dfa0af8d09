"""What a person decides on is seen whole: hidden text, blank runs and redactions are marked."""

from __future__ import annotations

import html
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime_core.templatetags.interlock import hidden_count, redacted, visible
from runtime_core.templatetags.visible_text import HIDDEN_CATEGORIES


def readable(markup: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", markup))


def raw_controls(markup: str) -> list[str]:
    return [c for c in markup if unicodedata.category(c) in HIDDEN_CATEGORIES and c not in "\n\t"]


@pytest.mark.parametrize(
    ("text", "escapes"),
    [
        ("rm -rf /w/\u202e gnp.tpircs", ["U+202E"]),
        ("ls\u200b -la", ["U+200B"]),
        ("ok\r\x1b[2K safe", ["U+000D", "U+001B"]),
        ("a\u2028b", ["U+2028"]),
        ("a\u2029b", ["U+2029"]),
        ("x\U000e0100y", ["U+E0100"]),
        ("x\U000e0041y", ["U+E0041"]),
        ("private \ue000 use", ["U+E000"]),
        ("half \ud800 pair", ["U+D800"]),
        ("filler \u3164 and braille \u2800", ["U+3164", "U+2800"]),
        ("nul \x00 del \x7f", ["U+0000", "U+007F"]),
    ],
)
def test_a11_hidden_characters_are_shown_as_escapes(text: str, escapes: list[str]) -> None:
    shown = visible(text)

    for escape in escapes:
        assert f">{escape}</span>" in shown
    assert raw_controls(shown) == []
    assert hidden_count(text) == len(escapes)


def test_a11_the_tail_behind_a_long_run_of_blanks_is_there_and_the_run_is_counted() -> None:
    command = "a" * 200 + " " * 400 + " ; rm -rf /w"

    shown = visible(command)

    assert "401 blanks" in shown
    assert readable(shown).replace("401 blanks", "") == command
    assert hidden_count(command) == 1


def test_a11_many_line_breaks_do_not_push_the_tail_out_of_sight() -> None:
    shown = visible("echo ok" + "\n" * 50 + "rm -rf /w")

    assert "50 line breaks" in shown
    assert "rm -rf /w" in shown


def test_ordinary_text_stays_as_it_is() -> None:
    text = "def f(x):\n\treturn \"naïve 日本語 ❤️\" if x < 1 else '&'\n"

    assert readable(visible(text)) == text
    assert hidden_count(text) == 0


def test_markup_in_a_payload_is_never_markup_on_the_page() -> None:
    shown = visible('<img src=x onerror=alert(1)>[REDACTED:<b>]"')

    assert "<img" not in shown
    assert "<b>" not in shown


def test_json_values_are_shown_in_full() -> None:
    shown = readable(visible({"path": "src/ä.py", "n": 3}))

    assert shown == '{\n  "path": "src/ä.py",\n  "n": 3\n}'


def test_redaction_markers_become_chips_with_their_text() -> None:
    text = "token [REDACTED:github#7f3a], body [WITHHELD:over 64 kB], <b>"

    for shown in (visible(text), redacted(text)):
        assert 'data-redacted="github"' in shown
        assert "data-withheld" in shown
        assert readable(shown) == text
        assert "<b>" not in shown


@given(st.text(st.characters(), max_size=200))
def test_no_text_loses_a_character_or_gains_markup(text: str) -> None:
    shown = visible(text)

    without_notes = re.sub(r'<span class="blanks-note">[^<]*</span>', "", shown)
    back = re.sub(
        r'<span class="escape"[^>]*>U\+([0-9A-F]+)</span>',
        lambda match: html.escape(chr(int(match[1], 16))),
        without_notes,
    )
    assert raw_controls(shown) == []
    assert set(re.findall(r"<(\w+)", shown)) <= {"span"}
    assert _joined(readable(back)) == _joined(text)


def _joined(text: str) -> str:
    # A marked run of line breaks is followed by one more, so that the tail starts on its own line.
    return re.sub(r"\s*\n\s*", "\n", text)

"""Untrusted text as a reader must see it: nothing hidden, nothing cut, redactions marked."""

from __future__ import annotations

import json
import re
import unicodedata
from html import escape

BLANK_RUN = 16
NEWLINE_RUN = 6
HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Zl", "Zp", "Co", "Cs", "Cn"})
PLAIN_CONTROLS = frozenset("\n\t")

# Letters and marks that draw nothing although their category says otherwise.
INVISIBLE_MARKS = frozenset(
    {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0}
    | set(range(0x180B, 0x1810))
    | set(range(0xFE00, 0xFE10))
    | set(range(0xE0100, 0xE01F0))
)
EMOJI_SELECTORS = frozenset("\ufe0e\ufe0f")

BLANKS = r"[ \t\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]"
BLANK_PATTERN = re.compile(
    rf"(?P<newlines>(?:{BLANKS}*\n){{{NEWLINE_RUN},}}{BLANKS}*)|(?P<blanks>{BLANKS}{{{BLANK_RUN},}})"
)
MARKER_PATTERN = re.compile(
    r"\[REDACTED:(?P<kind>[\w.-]{1,40})(?:#[0-9a-f]{4,8})?\]|\[WITHHELD:(?P<why>[^\[\]\n]{1,80})\]"
)
PIECES = re.compile(f"{MARKER_PATTERN.pattern}|{BLANK_PATTERN.pattern}")


def as_text(value: object) -> str:
    """Text of any value: strings as they are, everything else as indented JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def show_text(value: object) -> str:
    """Escaped HTML of the whole text; hidden characters, blank runs and redactions are marked."""
    text = as_text(value)
    parts: list[str] = []
    end = 0
    for match in PIECES.finditer(text):
        parts.append(_show_characters(text[end : match.start()]))
        is_marker = match["kind"] or match["why"]
        parts.append(_chip(match) if is_marker else _blanks(match))
        end = match.end()
    return "".join([*parts, _show_characters(text[end:])])


def mark_redactions(value: object) -> str:
    """Escaped HTML of the text in which only the redaction markers became chips."""
    text = as_text(value)
    parts: list[str] = []
    end = 0
    for match in MARKER_PATTERN.finditer(text):
        parts += [escape(text[end : match.start()]), _chip(match)]
        end = match.end()
    return "".join([*parts, escape(text[end:])])


def count_hidden(value: object) -> int:
    """How many characters of the text would not be seen by a reader."""
    text = as_text(value)
    return sum(_is_hidden(char, text[index - 1 : index]) for index, char in enumerate(text))


def count_blank_runs(value: object) -> int:
    """How many runs of blanks are long enough to push text out of sight."""
    return sum(1 for _ in BLANK_PATTERN.finditer(as_text(value)))


def _show_characters(text: str) -> str:
    return "".join(
        _escape_mark(char) if _is_hidden(char, text[index - 1 : index]) else escape(char)
        for index, char in enumerate(text)
    )


def _is_hidden(char: str, before: str) -> bool:
    if char in PLAIN_CONTROLS:
        return False
    if char in EMOJI_SELECTORS and before and unicodedata.category(before) == "So":
        return False
    return unicodedata.category(char) in HIDDEN_CATEGORIES or ord(char) in INVISIBLE_MARKS


def _escape_mark(char: str) -> str:
    code = f"U+{ord(char):04X}"
    name = escape(unicodedata.name(char, "control or unassigned character").lower())
    return f'<span class="escape" data-tone="late" title="Hidden character: {name}">{code}</span>'


def _blanks(match: re.Match[str]) -> str:
    run = match[0]
    newlines = run.count("\n")
    note = f"{newlines} line breaks" if newlines else f"{len(run)} blanks"
    # The run itself stays in the page, so that copying the text gives exactly what is stored.
    return (
        f'<span class="blanks" data-tone="late"><span class="blanks-note">{note}</span>'
        f"{escape(run)}</span>" + ("\n" if newlines else "")
    )


def _chip(match: re.Match[str]) -> str:
    if match["why"]:
        title = "Withheld: not stored here"
        return f'<span class="chip" data-withheld title="{title}">{escape(match[0])}</span>'
    title = "Redacted before it was stored; the same mark means the same value"
    kind = escape(match["kind"])
    return f'<span class="chip" data-redacted="{kind}" title="{title}">{escape(match[0])}</span>'

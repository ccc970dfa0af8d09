"""How arguments are laid out for the eye: whole, in reading order, big ones folded. Pure functions
of values.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from approvals.inbox.edit_fields import is_same
from runtime_core.templatetags.visible_text import count_blank_runs, count_hidden
from runtime_core.values import Json

FOLD_CHARACTERS = 3_000
FOLD_LINES = 40
SHORT = 60
SUMMARY_VALUE = 2_000
# Line by line comparison costs the product of both sides; above this a diff would hold up the page.
DIFF_LINES = 20_000


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument as shown. `layout`: text, lines, argv (a list of `items`) or json."""

    key: str
    layout: str
    text: str
    items: tuple[str, ...] = ()

    @property
    def is_folded(self) -> bool:
        """True if it is so big that it starts closed; it is still in the page whole."""
        return len(self.text) > FOLD_CHARACTERS or self.line_count > FOLD_LINES

    @property
    def is_short(self) -> bool:
        """True if it fits beside its name."""
        return self.layout in ("text", "json") and len(self.text) <= SHORT and self.line_count == 1

    @property
    def line_count(self) -> int:
        return self.text.count("\n") + 1

    @property
    def byte_count(self) -> int:
        return len(self.text.encode("utf-8", "replace"))

    @property
    def hidden(self) -> int:
        """How many characters or blank runs a reader would miss if printed as they are."""
        return count_hidden(self.text) + count_blank_runs(self.text)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a diff. `kind`: add, del, same, hunk or note."""

    kind: str
    text: str
    sign: str = " "


@dataclass(frozen=True, slots=True)
class Change:
    """One argument that differs between two sets; a side that is not there is None."""

    key: str
    before: str | None
    after: str | None
    lines: tuple[Line, ...] = ()


def arguments_of(args: Json) -> list[Argument]:
    """Every argument, none cut."""
    if not isinstance(args, dict):
        return [_argument("arguments", args)]
    return [_argument(key, value) for key, value in args.items()]


def summary_of(args: Json) -> str:
    """The arguments in one line for a list; a value too long for it is named with its size instead
    of cut.
    """
    if not isinstance(args, dict):
        return _short(args)
    if len(args) == 1:
        return _short(next(iter(args.values())))
    return " · ".join(f"{key}: {_short(value)}" for key, value in args.items())


def diff_lines(text: str) -> list[Line]:
    """The lines of a unified diff, each with its kind."""
    return [_diff_line(line) for line in _lines(text)]


def changes(before: Json, after: Json) -> list[Change]:
    """What differs between two sets of arguments, key by key; long texts line by line."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return [_change("arguments", _text(before), _text(after))] if before != after else []
    keys = [*before, *(key for key in after if key not in before)]
    return [
        _change(
            key,
            _text(before[key]) if key in before else None,
            _text(after[key]) if key in after else None,
        )
        for key in keys
        if key not in before or key not in after or not is_same(before[key], after[key])
    ]


def _argument(key: str, value: Json) -> Argument:
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return Argument(key, "argv", "\n".join(value), tuple(value))
    if isinstance(value, str):
        return Argument(key, "lines" if "\n" in value else "text", value)
    return Argument(key, "json", _text(value))


def _text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def _short(value: Json) -> str:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        text = " ".join(value)
    else:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) <= SUMMARY_VALUE:
        return text
    return f"({len(text):,} characters in {text.count(chr(10)) + 1:,} lines)"


def _diff_line(line: str) -> Line:
    if line.startswith("@@"):
        return Line("hunk", line)
    if line.startswith(("--- ", "+++ ", "diff ", "index ", "\\")):
        return Line("note", line)
    if line.startswith("+"):
        return Line("add", line[1:], "+")
    if line.startswith("-"):
        return Line("del", line[1:], "−")
    return Line("same", line[1:] if line.startswith(" ") else line)


def _change(key: str, before: str | None, after: str | None) -> Change:
    return Change(key, before, after, tuple(_line_diff(before, after)))


def _line_diff(before: str | None, after: str | None) -> Iterator[Line]:
    if before is None or after is None or "\n" not in before + after:
        return
    old, new = _lines(before), _lines(after)
    if len(old) + len(new) > DIFF_LINES:
        return
    for line in _unified(old, new):
        yield _diff_line(line)


def _unified(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    lines = difflib.unified_diff(old, new, lineterm="", n=3)
    next(lines, None)  # the two lines of file names
    next(lines, None)
    yield from lines


def _lines(text: str) -> list[str]:
    """Split at line feeds alone: other separators are characters that the reader must see."""
    return text.removesuffix("\n").split("\n")

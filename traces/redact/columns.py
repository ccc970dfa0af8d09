"""Columns: tables, CSV and SQL inserts, whose first line names what stands below it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from traces.redact.keys import Key, classify_key
from traces.redact.literal import is_password_like, is_secret_quoted
from traces.redact.marker import Span

_MAX_LINE = 2_000
_MAX_ROWS = 2_000
_RULE = re.compile(r"[ \t]{0,8}[-+|:=][-+|:= \t]{2,2000}")
# Names without blanks, so that a sentence with commas is none.
_NAMES = re.compile(r"[\"']?[\w.\-]{1,40}[\"']?(?:[,;\t][ ]?[\"']?[\w.\-]{1,40}[\"']?){1,60}")
_NAMES_LINE = re.compile(rf"(?m)^{_NAMES.pattern}\r?$")
_RULE_LINE = re.compile(rf"(?m)^{_RULE.pattern}\r?$")
_NAMES_BEGUN = re.compile(
    r"[\"']?[\w.\-]{0,40}(?:[\"']?[,;\t][ ]?[\"']?[\w.\-]{0,40}){0,60}[\"']?\r?"
)
_INSERT = re.compile(
    r"(?i)\b(?:insert|replace)\s{1,4}into\s{1,4}[\w.\"`\[\]]{1,120}\s{0,4}\((?P<names>[^()';]{1,2000})\)\s{0,8}values\s{0,8}"
)
_INSERT_WORD = re.compile(r"(?i)\b(?:insert|replace)\s{1,4}i\Z")
_INSERT_BEGUN = re.compile(
    r"(?i)\b(?:insert|replace)\s{1,4}into\s{1,4}[\w.\"`\[\]]{0,120}\s{0,4}(?:\([^;]{0,16000})?\Z"
)
_ROW = re.compile(
    r"\s{0,8},?\s{0,8}\((?P<cells>(?:'(?:[^'\\;]|\\.|''){0,4000}'|[^()';]){0,8000})\)"
)
_CELL = re.compile(r"\s*+(?:'(?P<q>(?:[^'\\]|\\.|'')*+)'|(?P<v>[^,']*+))\s*+(?:,|\Z)")


def find_columns(text: str) -> Iterator[Span]:
    """Find the secrets that stand under the name of one."""
    if "\n" in text:
        if "|" in text:
            yield from _tables(text)
        yield from _separated(text)
    for into in ("nto ", "NTO "):
        yield from _inserts(text, into)


def columns_open_from(text: str, first: int) -> int:
    """Return where a table, list or statement begins whose end is not here yet, or the length of the text."""
    starts = [len(text)]
    if found := _INSERT_BEGUN.search(text, first):
        starts.append(found.start())
    lines = _lines_back(text, first)
    last_start, last = lines[0]
    if "|" in last or _NAMES_BEGUN.fullmatch(last):
        starts.append(last_start)
    for is_row in (_is_piped, _is_listed):
        start = _block_start(lines, is_row)
        if start is not None:
            starts.append(start)
    return min(starts)


def _lines_back(text: str, first: int) -> list[tuple[int, str]]:
    """The last lines with their starts, the last one first."""
    begin = max(first, len(text) - 16_384)
    begin = text.rfind("\n", 0, begin) + 1 if begin else 0
    lines: list[tuple[int, str]] = []
    at = begin
    for line in text[begin:].split("\n"):
        lines.append((at, line))
        at += len(line) + 1
    return lines[::-1]


def _block_start(lines: list[tuple[int, str]], is_row: Callable[[str], bool]) -> int | None:
    """Where the rows that the text ends with begin, if their first line names a secret."""
    start = None
    for at, line in lines[1 : _MAX_ROWS + 1]:
        if not is_row(line):
            break
        if _sensitive(_cells(line, "|" if is_row is _is_piped else _separator(line))):
            start = at
    return start


def _is_piped(line: str) -> bool:
    return "|" in line or _RULE.fullmatch(line) is not None


def _is_listed(line: str) -> bool:
    return any(sign in line for sign in ",;\t")


def _separator(line: str) -> str:
    return next((sign for sign in ("\t", ";", ",") if sign in line), ",")


def _tables(text: str) -> Iterator[Span]:
    done = 0
    for rule in _RULE_LINE.finditer(text):
        start = text.rfind("\n", 0, max(rule.start() - 1, 0)) + 1
        line = text[start : rule.start()].rstrip("\r\n")
        if start < done or not line or "-" not in rule.group() or len(line) > _MAX_LINE:
            continue
        cells = _cells(line, "|")
        names = _sensitive(cells) if len(cells) > 1 else {}
        if names:
            rows, done = _rows(text, rule.end() + 1, "|", len(cells))
            yield from _below(rows, names)


def _separated(text: str) -> Iterator[Span]:
    done = 0
    for head in _NAMES_LINE.finditer(text):
        line = head.group().rstrip("\r")
        if head.start() < done or len(line) > _MAX_LINE:
            continue
        sign = _separator(line)
        cells = _cells(line, sign)
        names = _sensitive(cells)
        if names and len(names) < len(cells):
            rows, done = _rows(text, head.end() + 1, sign, len(cells))
            yield from _below(rows, names)


Row = tuple[int, list[tuple[int, str]]]


def _rows(text: str, at: int, sign: str, width: int) -> tuple[list[Row], int]:
    """The lines from `at` on that have as many cells as the line of names, taken apart, and where they end."""
    rows: list[Row] = []
    while at < len(text) and len(rows) < _MAX_ROWS:
        end = text.find("\n", at)
        line = text[at : end if end >= 0 else len(text)].removesuffix("\r")
        cells = _cells(line, sign) if len(line) <= _MAX_LINE else []
        if len(cells) != width:
            break
        rows.append((at, cells))
        at += len(line) + 1 if end < 0 else end + 1 - at
    return rows, at


def _below(rows: list[Row], names: dict[int, Key]) -> Iterator[Span]:
    for at, cells in rows:
        for n, key in names.items():
            start, value = cells[n]
            if _is_value(value, key):
                yield Span(at + start, at + start + len(value), key.label)


def _inserts(text: str, into: str) -> Iterator[Span]:
    # Looking for a word that is rare is much cheaper than trying the pattern everywhere.
    at = text.find(into)
    while at >= 0:
        begin = _INSERT_WORD.search(text, max(at - 14, 0), at)
        insert = _INSERT.match(text, begin.start()) if begin else None
        if insert:
            yield from _inserted(text, insert)
        at = text.find(into, at + 4)


def _inserted(text: str, insert: re.Match[str]) -> Iterator[Span]:
    names = _sensitive(_cells(insert["names"], ","))
    at = insert.end()
    for _ in range(_MAX_ROWS if names else 0):
        row = _ROW.match(text, at)
        if row is None:
            return
        for n, cell in enumerate(_CELL.finditer(row["cells"])):
            value = cell["q"] if cell["q"] is not None else ""
            if n in names and value and _is_value(value, names[n]):
                start = row.start("cells") + cell.start("q")
                yield Span(start, start + len(value), names[n].label)
        at = row.end()


def _cells(line: str, sign: str) -> list[tuple[int, str]]:
    """The cells of a line with their places, without blanks and quotes around them."""
    cells: list[tuple[int, str]] = []
    at = 0
    for part in line.split(sign):
        value = part.strip(" \t\r")
        start = at + part.index(value) if value else at
        if len(value) > 1 and value[0] in "\"'`" and value[-1] == value[0]:
            start, value = start + 1, value[1:-1]
        cells.append((start, value))
        at += len(part) + 1
    return cells


def _sensitive(cells: list[tuple[int, str]]) -> dict[int, Key]:
    """Which cells are names of secrets, and of which kind."""
    found: dict[int, Key] = {}
    for n, (_, name) in enumerate(cells):
        key = classify_key(name) if 2 <= len(name) <= 60 else None
        if key is not None:
            found[n] = key
    return found


def _is_value(value: str, key: Key) -> bool:
    # A column may hold anything about a secret: only what looks like one counts.
    return is_secret_quoted(value, key) and is_password_like(value)

"""Known values: the runtime's own credentials, found exactly, in every usual encoding."""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

from ahocorasick_rs import AhoCorasick, MatchKind

from traces.redact.marker import Span

MIN_CHARS = 6
MAX_CHARS = 20_000
MAX_VALUES = 20_000
_MIN_FORM_CHARS = 6
_LINE_CHARS = 16

_WORD = re.compile(r"[A-Za-z]{1,15}|[A-Z][a-z]+(?: [a-z]+){0,3}")
_ORDINARY = frozenset(
    "123456 1234567 12345678 123456789 1234567890 000000 111111 localhost 127.0.0.1 0.0.0.0".split()
)


def usable_known_values(candidates: Iterable[object]) -> tuple[str, ...]:
    """Return the candidates that may be searched for.

    Left out: what is no string, shorter than six characters, a plain word, a number counted up,
    a path or an address without a password: finding those would remove harmless text.
    """
    kept: dict[str, None] = {}
    for candidate in candidates:
        if not isinstance(candidate, str):
            continue
        value = candidate.strip()
        if len(value) > MAX_CHARS or not _is_distinct(value):
            continue
        kept[value] = None
        if len(kept) >= MAX_VALUES:
            break
    return tuple(kept)


def _is_distinct(value: str) -> bool:
    if len(value) < MIN_CHARS or len(set(value)) < 4:
        return False
    if value.lower() in _ORDINARY or _WORD.fullmatch(value):
        return False
    if re.fullmatch(r"(?:https?://[^\s@]+|/[\w./-]+|[\w-]+(?:\.[a-z][\w-]*)+(?::\d+)?)", value):
        return False
    return not re.fullmatch(r"\d{1,7}(?:\.\d+)?", value)


class KnownValues:
    """An index over known values; `find` returns every place where one stands, however encoded."""

    def __init__(self, values: Iterable[str]) -> None:
        self.values = usable_known_values(values)
        forms = _index_forms(self.values)
        self._plain = list(forms.values())
        self._search = (
            AhoCorasick(list(forms), matchkind=MatchKind.LeftmostLongest) if forms else None
        )
        self._spaced = [form for form in forms if any(char.isspace() for char in form)]

    def find(self, text: str) -> list[Span]:
        """Return the spans of known values in `text`."""
        if self._search is None or len(text) < _MIN_FORM_CHARS:
            return []
        return [
            Span(start, end, "known", self._plain[index])
            for index, start, end in self._search.find_matches_as_indexes(text)
        ]

    def open_from(self, text: str) -> int:
        """Return where an unfinished known value with blanks in it may have begun."""
        earliest = len(text)
        for form in self._spaced:
            start = text.find(form[:3], max(0, len(text) - len(form)))
            while 0 <= start < earliest:
                if form.startswith(text[start:]):
                    earliest = start
                start = text.find(form[:3], start + 1)
        return earliest


def _index_forms(values: Iterable[str]) -> dict[str, str]:
    forms: dict[str, str] = {}
    for value in values:
        for form in _encodings(value):
            if len(form) >= _MIN_FORM_CHARS:
                forms.setdefault(form, value)
    return forms


def _encodings(value: str) -> Iterator[str]:
    yield value
    yield from (line for line in _long_lines(value))
    for ascii_only in (True, False):
        once = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        yield once
        yield json.dumps(once, ensure_ascii=ascii_only)[1:-1]
    yield from _percent_forms(value)
    yield html.escape(value)
    yield html.escape(value, quote=False)
    yield html.escape(value).replace("&#x27;", "&#39;").replace("&quot;", "&#34;")
    yield repr(value)[1:-1]
    yield shlex.quote(value)
    yield value.encode().hex()
    yield value.encode().hex().upper()
    yield from _base64_forms(value.encode())


def _long_lines(value: str) -> Iterator[str]:
    if "\n" in value:
        for line in value.splitlines():
            if len(line) >= _LINE_CHARS and not line.startswith("-----"):
                yield line


def _percent_forms(value: str) -> Iterator[str]:
    for form in (quote(value, safe=""), quote(value), quote_plus(value)):
        yield form
        yield quote(form, safe="")
        yield re.sub(r"%[0-9A-F]{2}", lambda escape: escape.group().lower(), form)


# The same bytes look different in base64 at each of three offsets: keep the part that never varies.
def _base64_forms(raw: bytes) -> Iterator[str]:
    for offset in range(3):
        encoded = base64.b64encode(b"\0" * offset + raw).decode()
        first = (0, 2, 3)[offset]
        stable = encoded[first : 8 * (len(raw) + offset) // 6]
        yield stable
        yield stable.replace("+", "-").replace("/", "_")

"""A deployment's own rules, on top of the engine: patterns, key names, and people's data that may stay.

The engine goes first, so no rule can tear a secret apart before it is found. A pattern has a widest match, so a stream
knows how much it must hold back to come out as the whole text does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import re2

from traces.redact.marker import MARKER, Marker
from traces.redact.plain import unused_name

MAX_PATTERN_CHARS = 500
MIN_WIDTH, MAX_WIDTH = 3, 256
_MAX_MEMORY = 8 << 20
_MARKER_WIDTH = 64
_MAX_HELD = 16_384
_MAX_JSON_LEVELS = 4
_LINEAR = re2.Options()
_LINEAR.log_errors = False
_LINEAR.max_mem = _MAX_MEMORY


class RuleError(ValueError):
    """A rule that cannot be used; the text says why, and what would work."""


@dataclass(frozen=True, slots=True)
class TextRule:
    """What matches becomes a marker of the class `label`; with `keeps_name`, only the pattern's first group does."""

    pattern: Any
    label: str
    width: int
    keeps_name: bool = False


@dataclass(frozen=True, slots=True)
class KeyRule:
    """The value under a key of this name becomes a marker, whatever it is."""

    pattern: Any
    label: str


@dataclass(frozen=True, slots=True)
class Rules:
    """Compiled rules of one scope and surface."""

    texts: tuple[TextRule, ...] = ()
    keys: tuple[KeyRule, ...] = ()
    allowed: tuple[Any, ...] = ()
    known: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        """How many characters a stream holds back; 0 if it need not."""
        return max((_MARKER_WIDTH, *(rule.width for rule in self.texts))) + 1 if self.texts else 0

    def allows(self, value: str) -> bool:
        """True for personal data that may stay."""
        return any(pattern.fullmatch(value.strip()) for pattern in self.allowed)

    def key_label(self, name: str) -> str | None:
        """The class of what stands under this key, if a rule names it."""
        return next((rule.label for rule in self.keys if rule.pattern.fullmatch(name)), None)


def compile_text(pattern: str, label: str) -> TextRule:
    """A pattern rule; RuleError if it is too long, does not compile, matches nothing or has no widest match."""
    return TextRule(_compiled(pattern), label, _width(pattern))


def compile_allowed(pattern: str) -> Any:
    """A pattern of whole values that may stay; RuleError as for `compile_text`."""
    _width(pattern)
    return _compiled(pattern)


def compile_key(name: str, label: str) -> tuple[KeyRule, TextRule]:
    """A rule for a key name, `*` for any characters: one for structure, one for `name: value` in text."""
    if not re.fullmatch(r"[\w.*\- ]{1,64}", name) or not name.strip("* "):
        raise RuleError("A key name is 1 to 64 letters, digits, . _ - and *, and not * alone.")
    body = r"[\w.\-]{0,32}".join(re2.escape(part) for part in name.split("*"))
    quoted = r"\"[^\"\n]{1,128}\"|'[^'\n]{1,128}'"
    text = rf"(?i)\b(?:{body})[\"']?[ \t]{{0,3}}[:=][ \t]{{0,3}}({quoted}|[^\s,;\"'}}\]]{{1,128}})"
    widest = 33 * name.count("*") + len(name) + 142
    return (
        KeyRule(_compiled(f"(?i){body}"), label),
        TextRule(re2.compile(text, _LINEAR), label, widest, keeps_name=True),
    )


def _compiled(pattern: str) -> Any:
    if len(pattern) > MAX_PATTERN_CHARS:
        raise RuleError(f"The pattern has {len(pattern)} characters; at most {MAX_PATTERN_CHARS}.")
    try:
        compiled = re2.compile(pattern, _LINEAR)
    except re2.error as error:
        raise RuleError(f"The pattern does not compile: {_reason(error)}") from None
    if compiled.search(""):
        raise RuleError("The pattern matches the empty text, so it would match everywhere.")
    return compiled


def _reason(error: Exception) -> str:
    reason = error.args[0] if error.args else error
    return reason.decode() if isinstance(reason, bytes) else str(reason)


def _width(pattern: str) -> int:
    """The length of the widest match, by the parser of the standard library, which never runs it."""
    try:
        narrowest, widest = re._parser.parse(pattern).getwidth()  # type: ignore[attr-defined]
    except (re.error, OverflowError, RecursionError) as error:
        raise RuleError(f"The pattern uses what is not supported: {error}") from None
    if narrowest < MIN_WIDTH:
        raise RuleError(
            f"A match may have {narrowest} characters: shorter than {MIN_WIDTH}, it is everywhere."
        )
    if widest > MAX_WIDTH:
        raise RuleError(
            f"A match may have at most {MAX_WIDTH} characters: write {{1,64}} instead of + or *, "
            "so that text can be shown while it streams."
        )
    return int(widest)


class Applied:
    """Rules at work, with the engine's marks."""

    def __init__(self, rules: Rules, marker: Marker) -> None:
        self.rules = rules
        self._marker = marker

    def value(self, value: Any, counts: dict[str, int], level: int = 0) -> Any:
        """The JSON value with what the rules name replaced; `counts` gets how many of each class."""
        if isinstance(value, str):
            return self._string(value, counts, level)
        if isinstance(value, dict):
            shown: dict[str, Any] = {}
            for name, item in value.items():
                under = self._under(name, item, counts, level)
                shown[unused_name(self.text(name, counts), shown)] = under
            return shown
        if isinstance(value, list):
            return [self.value(item, counts, level) for item in value]
        return value

    def text(self, text: str, counts: dict[str, int] | None = None) -> str:
        """The text with every match replaced."""
        return self.piece(text, 0, len(text), counts if counts is not None else {})[0]

    def piece(self, text: str, first: int, limit: int, counts: dict[str, int]) -> tuple[str, int]:
        """The text from `first` up to about `limit`, and where it really ends: never within a match or marker."""
        parts: list[str] = []
        at = first
        for span in self._spans(text, first):
            if span.start >= limit:
                break
            if span.end > limit:
                limit = span.start
                break
            parts += (text[at : span.start], self._marked(text, span, counts))
            at = span.end
        parts.append(text[at:limit])
        return "".join(parts), max(at, limit)

    def _marked(self, text: str, span: _Span, counts: dict[str, int]) -> str:
        if not span.label:
            return text[span.start : span.end]
        head, tail = text[span.start : span.first], text[span.last : span.end]
        return head + self._mark(text[span.first : span.last], span.label, counts) + tail

    def _mark(self, found: str, label: str, counts: dict[str, int]) -> str:
        counts[label] = counts.get(label, 0) + 1
        return self._marker.render(label, found)

    def _under(self, name: str, item: Any, counts: dict[str, int], level: int) -> Any:
        label = self.rules.key_label(name)
        if label is None or item is None or isinstance(item, bool) or item in ("", [], {}):
            return self.value(item, counts, level)
        if isinstance(item, str) and MARKER.fullmatch(item):
            return item
        written = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
        return self._mark(written, label, counts)

    def _string(self, text: str, counts: dict[str, int], level: int) -> str:
        if self.rules.keys and level < _MAX_JSON_LEVELS and text[:1] in ("{", "["):
            try:
                inner = json.loads(text)
            except (ValueError, RecursionError):
                return self.text(text, counts)
            before = sum(counts.values())
            inner = self.value(inner, counts, level + 1)
            if sum(counts.values()) != before:
                return json.dumps(inner, ensure_ascii=False)
        return self.text(text, counts)

    def _spans(self, text: str, first: int) -> list[_Span]:
        """What is to be replaced, in order and joined where it overlaps; a marker that stays has no class."""
        marks = [
            _Span(m.start(), m.end(), m.start(), m.end(), "") for m in MARKER.finditer(text, first)
        ]
        found = list(marks)
        for rule in self.rules.texts:
            for match in rule.pattern.finditer(text, first):
                (start, end), inner = match.span(), match.span(1 if rule.keeps_name else 0)
                span = _Span(start, end, inner[0], inner[1], rule.label)
                if not any(mark.start <= span.first and span.last <= mark.end for mark in marks):
                    found.append(span)
        return _joined(found)


class _Span(NamedTuple):
    """A match from `start` to `end`, of which `first` to `last` is replaced."""

    start: int
    end: int
    first: int
    last: int
    label: str


def _joined(spans: Iterable[_Span]) -> list[_Span]:
    joined: list[_Span] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if joined and span.start < joined[-1].end:
            start, end, *_, label = joined[-1]
            end = max(end, span.end)
            joined[-1] = _Span(start, end, start, end, label or span.label)
        else:
            joined.append(span)
    return joined


class RuleStream:
    """A stream behind the engine's stream; what it gives out together is `Applied.text` of the whole."""

    def __init__(self, inner: Any, applied: Applied) -> None:
        self._inner = inner
        self._applied = applied
        self._buffer = ""
        self._at = 0

    @property
    def held(self) -> int:
        """Characters received and not yet given out."""
        return int(self._inner.held) + len(self._buffer) - self._at

    def feed(self, chunk: str) -> str:
        """Take the next piece and return the redacted text that can no longer change."""
        self._buffer += self._inner.feed(chunk)
        return self._give(len(self._buffer) - self._applied.rules.width)

    def end(self) -> str:
        """Return the redacted rest; the stream is over."""
        self._buffer += self._inner.end()
        return self._give(len(self._buffer))

    def _give(self, limit: int) -> str:
        if limit <= self._at:
            return ""
        text, end = self._applied.piece(self._buffer, self._at, limit, {})
        if len(self._buffer) - end > _MAX_HELD:
            # One match after the other without end: what is held goes out, as one look at it sees it.
            text, end = self._applied.piece(self._buffer, self._at, len(self._buffer), {})
        # One character stays, so that a rule sees what stands before it.
        self._buffer, self._at = self._buffer[max(end - 1, 0) :], min(end, 1)
        return text

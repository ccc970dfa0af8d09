"""Values: any Python value becomes JSON-safe data of the same shape, with its secrets replaced."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any

from traces.redact.blocks import closes_key, is_inside_key, opens_key
from traces.redact.clean import cap_text, clean_text, decode_bytes
from traces.redact.families import FAMILIES
from traces.redact.hints import Hints, is_secret_name
from traces.redact.keys import Key, classify_key
from traces.redact.known import KnownValues
from traces.redact.literal import is_placeholder, is_secret_quoted
from traces.redact.marker import MARKER, PERSONAL, WITHHELD, Marker, Span, merge_spans
from traces.redact.plain import MAX_INT_BITS, json_key, plain_form, unused_name
from traces.redact.text import find_all

MAX_DEPTH = 200
MAX_NODES = 500_000
MAX_JSON_LEVELS = 4

_DIGITS = re.compile(r"\+?[\d\s().-]{3,30}")


# Most short strings are plain words, ids or times; they need no closer look.
_HARMLESS = re.compile(
    r"[A-Za-z]?[a-z ,-]{0,40}|[a-z_.]{1,28}|(?=[0-9]*[a-f])[0-9a-f]{1,30}|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
    r"|20\d\d-\d\d-\d\dT[\d:.]{5,18}(?:Z|[+-]\d\d:?\d\d)?"
)


class OutOfTimeError(Exception):
    """The time allowed for one value is used up."""


class Walk:
    """One redaction of one value: walks it, counts what it removes, gives up at its limits."""

    def __init__(
        self,
        known: KnownValues,
        marker: Marker,
        out_of_time: Callable[[], bool],
        allowed: Callable[[str], bool] | None = None,
    ) -> None:
        self._allowed = allowed
        self.counts: Counter[str] = Counter()
        self._known = known
        self._marker = marker
        self._out_of_time = out_of_time
        self._nodes = 0
        self._above: set[int] = set()
        self._key_open = False
        self._names: dict[str, str] = {}

    def value(
        self,
        value: Any,
        depth: int = 0,
        key: Key | None = None,
        level: int = 0,
        *,
        whole: bool = False,
    ) -> Any:
        """Return the redacted form of `value`; `key` and `whole` say what its name announces."""
        self._check_limits()
        try:
            return self._value(value, depth, key, level, whole)
        except OutOfTimeError:
            raise
        except Exception:  # noqa: BLE001 - fail closed: whatever went wrong, it is not passed on
            return self._withhold()

    def _check_limits(self) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES or self._out_of_time():
            raise OutOfTimeError

    def _withhold(self) -> str:
        self.counts["withheld"] += 1
        return WITHHELD

    def _value(self, value: Any, depth: int, key: Key | None, level: int, whole: bool) -> Any:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, (bytes, bytearray, memoryview)):
            value = decode_bytes(bytes(value))
        if isinstance(value, str) and not isinstance(value, Enum):
            return self._string(str(value), depth, key, level, whole)
        if isinstance(value, (int, float)) and not isinstance(value, Enum):
            return self._number(value, key, whole)
        if depth >= MAX_DEPTH or id(value) in self._above:
            return self._withhold()
        self._above.add(id(value))
        try:
            return self._compound(value, depth, key, level, whole)
        finally:
            self._above.discard(id(value))

    def _compound(self, value: Any, depth: int, key: Key | None, level: int, whole: bool) -> Any:
        if isinstance(value, Mapping):
            return self._mapping(value, depth, key, level, whole)
        if isinstance(value, (list, tuple)):
            return self._sequence(value, depth, key, level, whole)
        if isinstance(value, (set, frozenset)):
            return self._sequence(sorted(value, key=repr), depth, key, level, whole)
        return self.value(plain_form(value), depth + 1, key, level, whole=whole)

    # strings and numbers

    def _string(self, text: str, depth: int, key: Key | None, level: int, whole: bool) -> str:
        text = cap_text(clean_text(text))
        if MARKER.fullmatch(text):
            return text
        if whole and text.strip() and not is_placeholder(text):
            return self._mark(key.label if key else "secret", text)
        if key is not None and self._is_secret(text, key) and not self._may_stay(key.label, text):
            return self._mark(key.label, text)
        if self._is_key_line(text):
            return self._mark("private_key", text)
        return self.text(text, depth, level)

    def _is_secret(self, text: str, key: Key) -> bool:
        if key.label in ("phone", "ssn", "card", "otp_code"):
            return _DIGITS.fullmatch(text.strip()) is not None
        if key.label == "authorization" and " " in text and not is_placeholder(text):
            return (
                re.match(
                    r"(?i)(?:bearer|basic|token|digest|apikey|bot|negotiate|hmac|oauth)\s+\S", text
                )
                is not None
            )
        return is_secret_quoted(text, key)

    def _is_key_line(self, text: str) -> bool:
        """Private keys stored line by line: between the begin and the end all lines are secret."""
        if opens_key(text):
            self._key_open = True
        elif closes_key(text):
            self._key_open = False
        elif self._key_open:
            return is_inside_key(text)
        return False

    def _number(self, number: int | float, key: Key | None, whole: bool) -> Any:
        if (whole or (key is not None and key.strong)) and abs(number) >= 1_000:
            return self._mark(key.label if key else "secret", str(number)[:64])
        if isinstance(number, int):
            if number.bit_length() > MAX_INT_BITS:
                return f"[number of {number.bit_length()} bits]"
            return self._personal_number(int(number), key)
        return float(number) if math.isfinite(number) else str(float(number))

    def _personal_number(self, number: int, key: Key | None) -> Any:
        if (
            key is not None
            and key.label in ("phone", "ssn", "card", "otp_code")
            and number >= 1_000
            and not self._may_stay(key.label, str(number))
        ):
            return self._mark(key.label, str(number))
        written = str(number)
        if 13 <= len(written) <= 19:
            redacted = self.text(written, 0, MAX_JSON_LEVELS)
            return number if redacted == written else redacted
        return number

    def _may_stay(self, label: str, value: str) -> bool:
        return self._allowed is not None and label in PERSONAL and self._allowed(value)

    def _mark(self, label: str, value: str) -> str:
        self.counts[label] += 1
        return self._marker.render(_vendor_label(value) or label, value)

    # mappings and sequences

    def _mapping(
        self, mapping: Mapping[Any, Any], depth: int, key: Key | None, level: int, whole: bool
    ) -> dict[str, Any]:
        names = [json_key(name) for name in mapping]
        hints = Hints(dict(zip(names, mapping.values(), strict=True)), key)
        redacted: dict[str, Any] = {}
        for name, item in zip(names, mapping.values(), strict=True):
            self._check_limits()
            item_key, item_whole = hints.of(name, item, whole)
            shown = self._name(name)
            redacted[unused_name(shown, redacted)] = self.value(
                item, depth + 1, item_key, level, whole=item_whole
            )
        return redacted

    def _name(self, name: str) -> str:
        shown = self._names.get(name)
        if shown is None:
            shown = self._names[name] = self.text(cap_text(clean_text(name)), 0, MAX_JSON_LEVELS)
        return shown

    def _sequence(
        self, items: Iterable[Any], depth: int, key: Key | None, level: int, whole: bool
    ) -> list[Any]:
        listed = list(items)
        if len(listed) == 2 and all(isinstance(item, str) for item in listed):
            pair_key = classify_key(listed[0])
            if pair_key is not None and classify_key(listed[1]) is None:
                return [listed[0], self.value(listed[1], depth + 1, pair_key, level)]
        redacted = []
        for item in listed:
            named = whole and isinstance(item, str) and is_secret_name(item)
            redacted.append(self.value(item, depth + 1, key, level, whole=whole and not named))
        return redacted

    # text, and JSON inside text

    def text(self, text: str, depth: int = 0, level: int = 0) -> str:
        """Return the redacted form of clean text; JSON documents at its start keep their structure."""
        if len(text) < 4 or (_HARMLESS.fullmatch(text) and not self._known.find(text)):
            return text
        parts: list[str] = []
        at = 0
        while level < MAX_JSON_LEVELS:
            piece = self.document(text, at, depth, level)
            if piece is None:
                break
            part, at = piece
            parts.append(part)
        parts.append(self.plain(text[at:]))
        return "".join(parts)

    def document(self, text: str, at: int, depth: int, level: int) -> tuple[str, int] | None:
        """Redact the JSON object or array that begins at `at` (after blanks); None if there is none."""
        first = _next_character(text, at)
        if text[first : first + 1] not in ("{", "["):
            return None
        try:
            parsed, end = _DECODER.raw_decode(text, first)
        except (ValueError, RecursionError):
            return None
        before = self.counts.total()
        redacted = self.value(parsed, depth + 1, None, level + 1)
        written = text[first:end]
        if self.counts.total() != before:
            written = _written_like(redacted, written)
        # A known value can be a whole document, so it is looked for once more in the written form.
        return text[at:first] + self._replace(written, self._known.find(written)), end

    def plain(self, text: str) -> str:
        """Return text with every finding replaced by its marker."""
        if len(text) < 4:
            return text
        self._check_limits()
        return self._replace(text, find_all(text, self._known.find))

    def _replace(self, text: str, spans: list[Span]) -> str:
        if not spans:
            return text
        parts: list[str] = []
        at = 0
        spans = without_allowed(text, spans, self._allowed)
        for span in without_markers(text, merge_spans(spans)):
            value = span.value if span.value is not None else text[span.start : span.end]
            self.counts[span.label] += 1
            parts.append(text[at : span.start])
            parts.append(self._marker.render(span.label, value))
            at = span.end
        parts.append(text[at:])
        return "".join(parts)


def without_allowed(
    text: str, spans: list[Span], allowed: Callable[[str], bool] | None
) -> list[Span]:
    """Leave out data of people that may stay; a secret never may."""
    if allowed is None:
        return spans
    return [
        span
        for span in spans
        if span.label not in PERSONAL
        or not allowed(span.value if span.value is not None else text[span.start : span.end])
    ]


def without_markers(text: str, spans: list[Span]) -> list[Span]:
    """Leave out spans that only cover a marker that is already there."""
    if "[REDACTED:" not in text and "[WITHHELD:" not in text:
        return spans
    return [
        span for span in spans if not _MARKED.search(text, max(0, span.start - 12), span.end + 1)
    ]


_MARKED = re.compile(r"\[(?:REDACTED|WITHHELD):")


def _vendor_label(value: str) -> str | None:
    """Name the vendor where a value under a secret name is a known kind of token."""
    if not 16 <= len(value) <= 512 or " " in value:
        return None
    lowered = value[:24].lower()
    for family in FAMILIES:
        if (
            lowered.startswith(family.prefixes)
            and (span := family.match(value, 0))
            and span.end == len(value)
        ):
            return family.label
    return None


class _DuplicateNameError(ValueError):
    pass


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        # Parsing would hide one of the two values: such a document is read as text.
        raise _DuplicateNameError
    return fields


_DECODER = json.JSONDecoder(object_pairs_hook=_without_duplicates)
_BLANKS = re.compile(r"[ \t\r\n]*")


def _next_character(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at


def _written_like(value: Any, sample: str) -> str:
    """Write JSON with the blanks the sample uses."""
    if re.match(r"[\[{]\r?\n", sample):
        indent = re.match(r"[\[{]\r?\n([ \t]*)", sample)
        return json.dumps(
            value, ensure_ascii=False, indent=(indent.group(1) or None) if indent else None
        )
    tight = '":"' in sample or ('": ' not in sample and ", " not in sample)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":") if tight else (", ", ": "))

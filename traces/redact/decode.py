"""Decoding: secrets that hide in percent escapes, base64 or hex are found and removed there."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator

from traces.redact.marker import Span

Find = Callable[[str], list[Span]]

_PERCENT = re.compile(r"%[0-9A-Fa-f]{2}")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{20,}+={0,2}")
_NEXT_LINE = re.compile(r"(?:\r?\n|\\n)[A-Za-z0-9+/_-]{4,80}+={0,2}")
_HEX = re.compile(r"(?<![A-Za-z0-9])[0-9a-f]{32,8192}+(?![A-Za-z0-9])")
MAX_DECODED = 1_000_000
_READABLE = re.compile(r"[^\x09\x0a\x0d\x20-\x7e\u00a0-\ud7ff\ue000-\ufffc]")


def find_decoded(text: str, find: Find) -> Iterator[Span]:
    """Find what `find` finds in the decoded parts of `text`; spans are of `text` itself."""
    if "%" in text:
        yield from _in_percent(text, find)
    yield from _in_base64(text, find)
    yield from _in_hex(text, find)


def _in_percent(text: str, find: Find) -> Iterator[Span]:
    escapes = list(_PERCENT.finditer(text))
    if not escapes:
        return
    plain, places = _unescape(text, escapes)
    for span in find(plain):
        first, last = places[span.start], places[span.end]
        if (last > first and plain[span.start : span.end] != text[first:last]) or "%" in text[
            first:last
        ]:
            yield Span(first, last, span.label, plain[span.start : span.end])
        elif last > first:
            yield Span(first, last, span.label)


def _unescape(text: str, escapes: list[re.Match[str]]) -> tuple[str, list[int]]:
    """Return the text without escapes, and for each character where it stood."""
    parts: list[str] = []
    places: list[int] = []
    at = 0
    for escape in escapes:
        parts.append(text[at : escape.start()])
        places.extend(range(at, escape.start()))
        code = int(escape.group()[1:], 16)
        parts.append(chr(code) if 0 < code < 128 else "\ufffd")
        places.append(escape.start())
        at = escape.end()
    parts.append(text[at:])
    places.extend(range(at, len(text) + 1))
    return "".join(parts), places


def _in_base64(text: str, find: Find) -> Iterator[Span]:
    budget = MAX_DECODED
    last = 0
    for found in _BASE64.finditer(text):
        if found.start() < last:
            continue
        last = _wrapped_end(text, found)
        encoded = text[found.start() : last]
        if not _may_be_base64(encoded):
            continue
        plain = _decode_base64(encoded)
        if plain is None or len(plain) > budget:
            continue
        budget -= len(plain)
        if find(plain):
            yield Span(found.start(), last, "encoded")


def _wrapped_end(text: str, first: re.Match[str]) -> int:
    """Base64 is often broken into lines of equal length: take the following lines too."""
    end = first.end()
    if not 60 <= end - first.start() <= 80:
        return end
    while line := _NEXT_LINE.match(text, end):
        end = line.end()
        if not 60 <= len(line.group().strip()) <= 84:
            break
    return end


def _may_be_base64(encoded: str) -> bool:
    """Leave out long names and paths, which are made of the same characters."""
    return not (encoded.islower() or encoded.isupper()) or encoded.endswith("=")


def _decode_base64(encoded: str) -> str | None:
    packed = re.sub(r"\\n|\s", "", encoded).translate(_STANDARD)
    try:
        raw = base64.b64decode(packed + "=" * (-len(packed) % 4))
    except (binascii.Error, ValueError):
        return None
    return _readable(raw)


_STANDARD = str.maketrans("-_", "+/")


def _readable(raw: bytes) -> str | None:
    try:
        plain = raw.decode("utf-8")
    except UnicodeDecodeError:
        if len(raw) >= 4 and raw[1] == 0 and raw[3] == 0:
            return raw.decode("utf-16-le", "replace")
        return None
    if len(_READABLE.findall(plain)) > len(plain) * 0.05:
        if len(raw) >= 8 and raw[1::2].count(0) == len(raw) // 2:
            return raw.decode("utf-16-le", "replace")
        return None
    return plain


def _in_hex(text: str, find: Find) -> Iterator[Span]:
    for found in _HEX.finditer(text):
        digits = found.group()
        plain = _readable(bytes.fromhex(digits)) if len(digits) % 2 == 0 else None
        if plain is not None and find(plain):
            yield Span(found.start(), found.end(), "encoded")

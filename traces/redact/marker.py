"""Markers: what stands in the place of removed text, and the span that names a removal."""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import NamedTuple

WITHHELD = "[WITHHELD:redactor_error]"

# Values of these classes can be guessed by trying them all, so even a keyed tag says too much.
LOW_ENTROPY = frozenset({"phone", "ssn", "card", "cn_id", "email", "iban", "pin", "otp_code"})
# What tells of people rather than opens something.
PERSONAL = frozenset({"phone", "ssn", "card", "cn_id", "email", "iban"})
_TAGGED_FROM = 12

MARKER = re.compile(r"\[(?:REDACTED|WITHHELD):[a-z0-9_]{1,40}(?:#[0-9a-f]{4})?\]")


class Span(NamedTuple):
    """Text from `start` to `end` is to be removed; `value` is the plain value if it was encoded."""

    start: int
    end: int
    label: str
    value: str | None = None


class Marker:
    """Writes markers; the same value under the same key always gets the same marker."""

    def __init__(self, key: bytes) -> None:
        self._key = hashlib.sha256(b"redaction-marker" + key).digest()

    def render(self, label: str, value: str) -> str:
        """Return the marker for `value`: its class, and four hex digits if it is hard to guess."""
        if label in LOW_ENTROPY or len(value) < _TAGGED_FROM:
            return f"[REDACTED:{label}]"
        digest = hmac.new(self._key, value.encode("utf-8", "replace"), hashlib.sha256)
        return f"[REDACTED:{label}#{digest.hexdigest()[:4]}]"


def merge_spans(spans: list[Span]) -> list[Span]:
    """Join overlapping spans; the one that starts first (longest first) names the class."""
    merged: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start, -s.end)):
        if merged and span.start < merged[-1].end:
            last = merged[-1]
            if span.end > last.end:
                merged[-1] = Span(last.start, span.end, last.label)
        elif span.end > span.start:
            merged.append(span)
    return merged

"""The engine: known values, key names, token families, numbers and decoding behind one call."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from traces.redact.clean import cap_text, clean_text
from traces.redact.known import KnownValues
from traces.redact.marker import WITHHELD, Marker, Span, merge_spans
from traces.redact.stream import TextStream
from traces.redact.text import find_all
from traces.redact.value import OutOfTimeError, Walk, without_allowed, without_markers

# One value may take this long; what takes longer is withheld.
MAX_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Redacted:
    """A value without its secrets, and how many of each class were removed."""

    value: Any
    counts: dict[str, int]


class Engine:
    """Redacts values and text; the same key gives the same marker to the same secret.

    It never raises and never returns what it could not read: that is replaced by
    `[WITHHELD:redactor_error]`.
    """

    def __init__(
        self,
        *,
        key: bytes,
        known_values: Iterable[str] = (),
        version: int = 1,
        allowed: Callable[[str], bool] | None = None,
    ) -> None:
        """`allowed` says which data of people may stay; it is never asked about secrets."""
        self.version = version
        self.marker = Marker(key)
        self._key = key
        self._allowed = allowed
        self._known = KnownValues(known_values)

    def redact(self, value: Any) -> Redacted:
        """Return JSON-safe data of the same shape, with secrets replaced by markers."""
        walk = self._walk()
        try:
            redacted = walk.value(value)
        except OutOfTimeError:
            return Redacted(WITHHELD, {"withheld": 1})
        return Redacted(redacted, dict(walk.counts))

    def text(self, text: str) -> str:
        """Return the text with secrets replaced by markers."""
        try:
            return self._walk().text(cap_text(clean_text(text)))
        except Exception:  # noqa: BLE001 - fail closed: whatever went wrong, the text is not passed on
            return WITHHELD

    def stream(self) -> TextStream:
        """Return a stream that redacts text arriving in pieces."""
        return TextStream(self)

    def with_known_values(self, values: Iterable[str]) -> Engine:
        """Return an engine with the same key that also knows these values."""
        return Engine(
            key=self._key,
            known_values=(*self._known.values, *values),
            version=self.version,
            allowed=self._allowed,
        )

    def with_allowed(self, allowed: Callable[[str], bool]) -> Engine:
        """Return the same engine, but for data of people that may stay."""
        engine = copy.copy(self)
        engine._allowed = allowed
        return engine

    # What the stream needs to work piece by piece.

    def document(self, text: str) -> tuple[str, int] | None:
        """Redact the JSON document at the start of a text; returns it and where it ends."""
        return self._walk().document(text, 0, 0, 0)

    def spans(self, text: str) -> list[Span]:
        """Return what is to be removed from plain text, in order."""
        found = without_allowed(text, find_all(text, self._known.find), self._allowed)
        return without_markers(text, merge_spans(found))

    def mark(self, span: Span, text: str) -> str:
        """Return the marker of a span."""
        value = span.value if span.value is not None else text[span.start : span.end]
        return self.marker.render(span.label, value)

    def known_open_from(self, text: str) -> int:
        """Return where an unfinished known value at the end of the text may begin."""
        return self._known.open_from(text)

    def _walk(self) -> Walk:
        return Walk(self._known, self.marker, _deadline(MAX_SECONDS), self._allowed)


def _deadline(seconds: float) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() > end

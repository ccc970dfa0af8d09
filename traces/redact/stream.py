"""Streaming: text that arrives in pieces comes out redacted exactly as if it had come whole.

Text is held back while it could still become part of a secret: the last words, an open name or
command, a run of digits, a private key, a JSON document at the start.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from traces.redact.blocks import key_end, key_open_from
from traces.redact.clean import clean_text
from traces.redact.columns import columns_open_from
from traces.redact.marker import WITHHELD, Span
from traces.redact.text import block_open_from, open_from

if TYPE_CHECKING:
    from traces.redact.engine import Engine

MAX_HELD = 16_384
MAX_DOCUMENT = 262_144
_KEPT_ON_OVERFLOW = 256
_CONTEXT = 1_024
_HELD_WORDS = 6

_OPEN_NUMBER = re.compile(
    r"(?:[\d\-() +.\u00a0]{1,40}|[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{1,4}){0,8}[ -]?)\Z"
)
_KEY_EDGE = re.compile(r"-{1,5}[A-Z0-9 -]{0,60}\Z")
_OPEN_LINES = re.compile(r"(?:[A-Za-z0-9+/_-]{60,80}\r?\n)+[A-Za-z0-9+/_=-]*\Z")


class TextStream:
    """One stream of text; `feed` returns what is safe to show, `end` the rest."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._buffer = ""
        self._done = 0
        self._document: _OpenDocument | None = _OpenDocument()
        self._failed = False
        self._in_key = False

    @property
    def held(self) -> int:
        """Characters received and not yet given out."""
        return len(self._buffer) - self._done

    def feed(self, chunk: str) -> str:
        """Take the next piece and return the redacted text that can no longer change."""
        return self._guarded(chunk, final=False)

    def end(self) -> str:
        """Return the redacted rest; the stream is over."""
        return self._guarded("", final=True)

    def _guarded(self, chunk: str, *, final: bool) -> str:
        if self._failed:
            return ""
        try:
            self._buffer += clean_text(chunk)
            return self._advance(final)
        except Exception:  # noqa: BLE001 - fail closed: nothing more of this stream is shown
            self._failed = True
            self._buffer = ""
            self._done = 0
            return WITHHELD

    def _advance(self, final: bool) -> str:
        parts: list[str] = []
        while self._document is not None:
            part = self._take_document(final)
            if part is None:
                return "".join(parts)
            parts.append(part)
        if self._in_key:
            self._drop_key()
        parts.append(self._take_text(final))
        return "".join(parts)

    def _drop_key(self) -> None:
        """A private key too long to be held: its rest is dropped as it comes."""
        end = key_end(self._buffer, self._done)
        self._in_key = end == len(self._buffer)
        self._buffer = self._buffer[end:]
        self._done = 0

    def _take_document(self, final: bool) -> str | None:
        """Give out a finished JSON document; None while it is open, "" once this is plain text."""
        document = self._document
        if document is None:
            return ""
        state = document.read(self._buffer)
        if state == "open" and not final and len(self._buffer) <= MAX_DOCUMENT:
            return None
        if state == "closed":
            piece = self._engine.document(self._buffer)
            if piece is not None:
                text, end = piece
                self._buffer = self._buffer[end:]
                self._document = _OpenDocument()
                return text
        self._document = None
        return ""

    def _take_text(self, final: bool) -> str:
        buffer = self._buffer
        cut = len(buffer) if final else self._cut(buffer)
        if cut <= self._done:
            return ""
        spans = self._engine.spans(buffer)
        forced = not final and len(buffer) - cut > MAX_HELD
        if forced:
            cut = len(buffer) - _KEPT_ON_OVERFLOW
        elif not final:
            for span in spans:
                if span.start < cut <= span.end:
                    cut = span.start
            if len(buffer) - cut > MAX_HELD:
                forced, cut = True, len(buffer) - _KEPT_ON_OVERFLOW
        if cut <= self._done:
            return ""
        shown = self._render(buffer, spans, cut)
        self._done = cut
        if forced:
            self._in_key = any(s.label == "private_key" and s.start < cut < s.end for s in spans)
        self._forget()
        return shown

    def _render(self, buffer: str, spans: list[Span], cut: int) -> str:
        parts: list[str] = []
        at = self._done
        for span in spans:
            if span.end <= at or span.start >= cut:
                continue
            parts.append(buffer[at : span.start])
            parts.append(self._engine.mark(span, buffer))
            at = min(span.end, cut)
        parts.append(buffer[at:cut])
        return "".join(parts)

    def _cut(self, buffer: str) -> int:
        """Return up to where no later text can change what is found."""
        cut = self._last_words(buffer)
        if cut <= self._done:
            return self._overflow(buffer, cut)
        for pattern in (_OPEN_NUMBER, _KEY_EDGE):
            found = pattern.search(buffer, max(self._done, len(buffer) - 160))
            if found:
                cut = min(cut, found.start())
        lines = _OPEN_LINES.search(buffer, max(self._done, len(buffer) - MAX_HELD))
        if lines:
            cut = min(cut, lines.start())
        cut = min(cut, open_from(buffer, self._done), block_open_from(buffer, self._done))
        cut = min(cut, key_open_from(buffer, self._done), columns_open_from(buffer, self._done))
        cut = min(cut, self._engine.known_open_from(buffer))
        return self._overflow(buffer, cut)

    def _last_words(self, buffer: str) -> int:
        at = len(buffer)
        for _ in range(_HELD_WORDS):
            at = max(buffer.rfind(" ", self._done, at), buffer.rfind("\n", self._done, at))
            if at < 0:
                return self._done
        return at

    def _overflow(self, buffer: str, cut: int) -> int:
        if len(buffer) - max(cut, self._done) > MAX_HELD:
            return len(buffer) - _KEPT_ON_OVERFLOW
        return cut

    def _forget(self) -> None:
        """Keep only so much of the text already shown as rules look back on."""
        if self._done <= 2 * _CONTEXT:
            return
        first = self._buffer.rfind("\n", 0, self._done - _CONTEXT) + 1
        if self._done - first > 4 * _CONTEXT:
            first = self._done - _CONTEXT
        self._buffer = self._buffer[first:]
        self._done -= first


class _OpenDocument:
    """Reads the start of a text and says whether it can still become a JSON document."""

    _AFTER = {
        "{": '"}',
        "[": '"{[]-0123456789tfnNI',
        ",": '"{[-0123456789tfnNI',
        ":": '"{[-0123456789tfnNI',
        '"': ":,}]",
        "}": ",}]",
        "]": ",}]",
    }
    _PLAIN = frozenset("0123456789+-.eEtrufalsnNIity")
    _STRING_END = re.compile(r'(?:[^"\\\x00-\x1f]|\\.)*+')

    def __init__(self) -> None:
        self._at = 0
        self._stack: list[str] = []
        self._last = ""
        self._in_string = False
        self._state = "open"

    def read(self, text: str) -> str:
        """Read on and return `open`, `closed` or `text`."""
        while self._state == "open" and self._at < len(text):
            if self._in_string:
                self._read_string(text)
                if self._in_string:
                    break
            else:
                self._read_character(text[self._at])
                self._at += 1
        return self._state

    def _read_string(self, text: str) -> None:
        found = self._STRING_END.match(text, self._at)
        self._at = found.end() if found else self._at
        if self._at >= len(text) or text[self._at] == "\\":
            return
        if text[self._at] == '"':
            self._in_string = False
            self._last = '"'
            self._at += 1
        else:
            self._state = "text"

    def _read_character(self, char: str) -> None:
        if char in " \t\r\n":
            return
        if not self._last and char not in "{[":
            self._state = "text"
            return
        allowed = self._AFTER.get(self._last)
        if allowed is not None and char not in allowed:
            self._state = "text"
        elif char in "{[":
            self._stack.append(char)
            self._last = char
        elif char in "}]":
            self._close(char)
        elif char == '"':
            self._in_string = True
        elif char in ",:" or char in self._PLAIN:
            self._last = char
        else:
            self._state = "text"

    def _close(self, char: str) -> None:
        if not self._stack or (self._stack.pop() == "{") != (char == "}"):
            self._state = "text"
        elif not self._stack:
            self._state = "closed"
        self._last = char

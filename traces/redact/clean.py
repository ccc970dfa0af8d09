"""Sanitising: what PostgreSQL cannot store, and strings that are too long to keep."""

from __future__ import annotations

import re

MAX_CHARS = 1_000_000
HEAD_CHARS = 700_000
TAIL_CHARS = 299_000

_SURROGATE = re.compile("[\ud800-\udfff]")
_SPACE = re.compile(r"\s")
_EDGE = 4_096


def clean_text(text: str) -> str:
    """Replace NUL and lone surrogates, character for character, by visible signs."""
    if "\x00" in text:
        text = text.replace("\x00", "\u2400")
    if _SURROGATE.search(text):
        text = _SURROGATE.sub("\ufffd", text)
    return text


def decode_bytes(raw: bytes) -> str:
    """Read bytes as UTF-8; what is not UTF-8 becomes a replacement character."""
    return raw[: 4 * MAX_CHARS].decode("utf-8", "replace")


def cap_text(text: str) -> str:
    """Keep head and tail of a string over `MAX_CHARS` and say how many characters were dropped."""
    if len(text) <= MAX_CHARS:
        return text
    head = _without_cut_word(text[:HEAD_CHARS])
    tail = _without_cut_first_word(text[-TAIL_CHARS:])
    dropped = len(text) - len(head) - len(tail)
    return f"{head}\n[... {dropped} characters dropped ...]\n{tail}"


# A secret cut in half at the edge would no longer be recognised, so the cut word goes too.
def _without_cut_word(head: str) -> str:
    edge = max(0, len(head) - _EDGE)
    last = max(head.rfind(" ", edge), head.rfind("\n", edge))
    return head[:last] if last > 0 else head


def _without_cut_first_word(tail: str) -> str:
    first = _SPACE.search(tail, 0, _EDGE)
    return tail[first.end() :] if first else tail

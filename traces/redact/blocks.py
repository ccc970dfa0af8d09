"""Blocks of several lines: private keys, and the data of Kubernetes secrets."""

from __future__ import annotations

import base64
import binascii
import re
from bisect import bisect_left
from collections.abc import Iterator

from traces.redact.keys import Key, is_harmless_inside
from traces.redact.literal import is_placeholder, is_secret_bare
from traces.redact.marker import Span

_BEGIN = re.compile(r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_END = re.compile(r"-{4,5} ?END [A-Z0-9 ]{0,40}-{4,5}")
_ORPHAN_END = re.compile(r"-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_KEY_TEXT = re.compile(r"(?:[A-Za-z0-9+/=]{1,128}(?:\s|\\+[nr]){0,4})+\Z")
_OTHER_BEGIN = re.compile(r"-{5}BEGIN ")
_PUTTY = re.compile(
    r"Private-Lines: \d{1,3}(?:\r?\n|\\n)(?P<v>(?:[A-Za-z0-9+/=]{1,80}(?:\r?\n|\\n|\Z)){1,100})"
)
_GAP = r"(?:\s|\\+[nr]|(?:Proc-Type|DEK-Info|Version|Comment|Hash):[^\n\\]{0,100})"
_BODY = re.compile(rf"{_GAP}*+(?:[A-Za-z0-9+/=]{{20,}}+{_GAP}*+)++(?:[A-Za-z0-9+/=]{{1,76}}+)?")
_LOOSE_BODY = re.compile(r"(?:[A-Za-z0-9+/=\s]|\\+[nr])*+")
MAX_KEY = 16_384


def find_private_keys(text: str) -> Iterator[Span]:
    """Find the inside of private key blocks, also where the begin or the end is missing."""
    last = 0
    ends = [end.start() for end in _END.finditer(text)]
    for begin in _BEGIN.finditer(text):
        if begin.start() < last:
            continue
        last = _stop(text, begin.end(), ends)
        if last - begin.end() >= 8:
            yield Span(begin.end(), last, "private_key")
    yield from _orphans(text)
    for lines in _PUTTY.finditer(text):
        yield Span(lines.start("v"), lines.end("v"), "private_key")


def _stop(text: str, first: int, ends: list[int]) -> int:
    place = bisect_left(ends, first)
    if place == len(ends) or ends[place] > first + MAX_KEY:
        # No end in sight: what looks like a key goes, the text after it stays.
        body = _BODY.match(text, first)
        return body.end() if body else first
    other = _OTHER_BEGIN.search(text, first, ends[place])
    return other.start() if other else ends[place]


def _orphans(text: str) -> Iterator[Span]:
    last = 0
    for end in _ORPHAN_END.finditer(text):
        first = max(last, end.start() - MAX_KEY)
        last = end.end()
        if _BEGIN.search(text, first, end.start()):
            continue
        window = text[first : end.start()]
        start = _key_text_start(window)
        if len(window) - start >= 8:
            yield Span(first + start, end.start(), "private_key")


def _key_text_start(window: str) -> int:
    """Walk back over lines of base64."""
    at = len(window)
    for line in reversed(re.split(r"(?<=\n)", window)):
        if not re.fullmatch(r"(?:[A-Za-z0-9+/=]{1,4096}|(?:\\+[nr])){0,400}\s*", line):
            break
        at -= len(line)
    return at


def is_inside_key(line: str) -> bool:
    """Say whether a whole string is only lines of a key (its begin was in an earlier string)."""
    return re.fullmatch(r"(?:[A-Za-z0-9+/=]{8,4096}\s{0,2}){1,2000}", line) is not None


def key_end(text: str, first: int) -> int:
    """Return where text that can only be the rest of a key ends."""
    found = _LOOSE_BODY.match(text, first)
    return found.end() if found else first


def key_open_from(text: str, first: int) -> int:
    """Return where a private key begins that has not ended yet, or the length of the text."""
    if "PRIVATE" not in text[first:]:
        return len(text)
    for begin in reversed(list(_BEGIN.finditer(text, first))):
        return len(text) if _END.search(text, begin.end()) else begin.start()
    return len(text)


def opens_key(text: str) -> bool:
    """Say whether a private key begins in this text and does not end in it."""
    begins = list(_BEGIN.finditer(text))
    return bool(begins) and _END.search(text, begins[-1].end()) is None


def closes_key(text: str) -> bool:
    """Say whether a private key ends in this text."""
    return _ORPHAN_END.search(text) is not None


_DATA = re.compile(
    r"\n(?P<pad>[ ]{0,12})(?:(?P<name>data|stringData|binaryData|secrets|credentials):"
    r"|\[(?P<section>secrets?|credentials?|passwords?)\])[ ]*\r?\n"
)
_ENTRY = re.compile(
    r"(?P<pad>[ ]{0,16})(?P<k>[\w.\-/\"']{1,100})[ ]{0,20}(?::|=)(?:[ ]*(?P<v>[^\r\n]*))?(?:\r?\n|\Z)"
)
_INLINE = re.compile(r"""(?:\\*")(?:data|binaryData)(?:\\*")\s?:\s?\{(?P<body>[^{}]{4,16384})\}""")
_INLINE_VALUE = re.compile(r"""(?:\\*")\s?:\s?(?:\\*")(?P<v>[A-Za-z0-9+/]{8,8192}={0,2})(?=\\*")""")
_MAX_ENTRIES = 200
_STRONG = Key("secret", True)


def find_secret_data(text: str) -> Iterator[Span]:
    """Find the entries of a Kubernetes Secret, and of a settings section named `secrets`."""
    first_line = _DATA.match("\n" + text[:200])
    heads = [*([first_line] if first_line else []), *_DATA.finditer(text)]
    for block in heads:
        at = block.end() - (block is first_line)
        for _ in range(_MAX_ENTRIES):
            entry = _ENTRY.match(text, at)
            if entry is None or (block["name"] and len(entry["pad"]) <= len(block["pad"])):
                break
            value = (entry["v"] or "").strip().strip("\"'")
            if value and _is_entry_secret(entry["k"], value, block["name"]):
                first = text.index(value, entry.start("v"))
                yield Span(first, first + len(value), "secret")
            at = entry.end()
    for block in _INLINE.finditer(text):
        for value in _INLINE_VALUE.finditer(text, *block.span("body")):
            if is_encoded_secret(value["v"]):
                yield Span(value.start("v"), value.end("v"), "secret")


def _is_entry_secret(name: str, value: str, block: str | None) -> bool:
    if is_placeholder(value) or value in ("|", ">", "|-", ">-"):
        return False
    if block in ("data", "binaryData"):
        return is_encoded_secret(value)
    if is_harmless_inside(name.strip("\"'")):
        return False
    return block == "stringData" or is_secret_bare(value, _STRONG, config=True)


def is_encoded_secret(value: str) -> bool:
    """Say whether a value is base64 of readable text or of a longer key."""
    if len(value) < 8 or len(value) % 4 or not re.fullmatch(r"[A-Za-z0-9+/]+={0,2}", value):
        return False
    try:
        raw = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return False
    readable = all(32 <= byte < 127 or byte in (9, 10, 13) for byte in raw)
    return readable or (len(value) >= 24 and value.endswith("="))

"""The door through which everything goes that PostgreSQL must be able to hold.

`text` and `jsonb` cannot hold U+0000 or lone surrogates. Both become visible marks; the six characters of a literal
`\\u0000` in a text are left as they are.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from runtime_core.values import Json

NUL_MARK = "\u2400"  # ␀
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_MAX_DEPTH = 200


def storable_text(text: str) -> str:
    """`text` with NUL and lone surrogates replaced by visible characters."""
    return _UNSTORABLE.sub(lambda m: NUL_MARK if m[0] == "\x00" else "\ufffd", text)


def storable(value: Any, _depth: int = 0) -> Json:
    """`value` as JSON that PostgreSQL stores: bytes decoded, NaN and infinities as text, odd objects as text."""
    if _depth > _MAX_DEPTH:
        return "[too deep]"
    match value:
        case None | bool() | int():
            return value
        case str():
            return storable_text(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case bytes() | bytearray():
            return storable_text(bytes(value).decode("utf-8", "replace"))
        case dict():
            return {storable_text(str(k)): storable(v, _depth + 1) for k, v in value.items()}
        case list() | tuple() | set() | frozenset():
            return [storable(v, _depth + 1) for v in value]
        case _:
            return storable_text(str(value))


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def canonical(value: Json) -> str:
    """The one text of a JSON value that digests are taken over: sorted keys, no blanks, Unicode as it is."""
    return _CANONICAL.encode(value)


def clip(text: str, max_bytes: int) -> tuple[str, bool]:
    """`text` in at most about `max_bytes` bytes (head and tail, with a note between), and whether it was cut."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= max_bytes:
        return text, False
    half = max(max_bytes // 2, 1)
    head, tail = raw[:half].decode("utf-8", "ignore"), raw[-half:].decode("utf-8", "ignore")
    return f"{head}\n[… {len(raw) - 2 * half} bytes left out …]\n{tail}", True

"""The development corpus, and how a leak or a false hit in it is judged."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

from traces.redact import Engine

_FILE = Path(__file__).with_name("corpus.jsonl.gz")
_WINDOW = 8


@cache
def load_rows() -> tuple[dict[str, Any], ...]:
    """Return the rows that count."""
    with gzip.open(_FILE, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return tuple(row for row in rows if not row.get("optional"))


def redact_row(engine: Engine, row: dict[str, Any]) -> str:
    """Redact a row the way it would arrive: as a value, as pieces or as text."""
    if "obj" in row:
        return json.dumps(engine.redact(row["obj"]).value, ensure_ascii=False)
    if "chunks" in row:
        stream = engine.stream()
        return "".join(stream.feed(chunk) for chunk in row["chunks"]) + stream.end()
    return engine.text(row["text"])


def leaks(row: dict[str, Any], redacted: str) -> list[str]:
    """Return the secrets of which eight characters of the last 70 % survive."""
    return [secret for secret in row["secrets"] if survives(secret, redacted)]


def survives(secret: str, redacted: str) -> bool:
    """Say whether a telling part of a secret is still readable."""
    end = secret[int(len(secret) * 0.3) :]
    if len(end) <= _WINDOW:
        return end in redacted
    return any(end[at : at + _WINDOW] in redacted for at in range(len(end) - _WINDOW + 1))


def is_changed(row: dict[str, Any], redacted: str) -> bool:
    """Say whether a harmless row came out other than it went in."""
    if "obj" in row:
        return bool(json.loads(redacted) != row["obj"])
    return bool(redacted != row["text"])

"""Redaction: the one function every stored, streamed or exported value passes through.

Pure code: no Django, no settings, no I/O. `Engine` is what other rooms use.
"""

from __future__ import annotations

from traces.redact.engine import Engine, Redacted
from traces.redact.known import usable_known_values
from traces.redact.marker import WITHHELD
from traces.redact.stream import TextStream

__all__ = ["WITHHELD", "Engine", "Redacted", "TextStream", "usable_known_values"]

"""Engines decide what a run does next; they never execute anything and never see the database."""

from __future__ import annotations

from runtime_core.engines.port import Engine
from runtime_core.engines.react import React
from runtime_core.errors import InvalidInput

ENGINES: dict[str, Engine] = {"react": React()}


def engine(name: str) -> Engine:
    """The engine of that name; InvalidInput says which there are."""
    try:
        return ENGINES[name]
    except KeyError:
        known = ", ".join(sorted(ENGINES))
        raise InvalidInput(f"engine: {name!r} is unknown; there are: {known}.") from None

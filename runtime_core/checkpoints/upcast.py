"""States of older releases, brought up to today's shape one version at a time.

A version that is not in the table is refused: nothing is guessed, and nothing is started anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from runtime_core.errors import StateUnusable

SCHEMA_VERSION = 2

State = dict[str, Any]


def _with_cut(state: State) -> State:
    """Version 1 knew no compaction: the model is sent every message."""
    return {**state, "cut": 0}


# From each older version to the one after it.
UPCASTERS: Mapping[int, Callable[[State], State]] = {1: _with_cut}


def upcast(state: State, version: int) -> State:
    """The state as this release reads it. StateUnusable for a version that this release does not know."""
    while version != SCHEMA_VERSION:
        step = UPCASTERS.get(version)
        if step is None:
            raise StateUnusable(
                f"it has schema version {version}, and this release reads "
                f"{min(UPCASTERS)} to {SCHEMA_VERSION}"
            )
        state, version = step(state), version + 1
    return state

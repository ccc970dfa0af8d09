"""Named points at which a test can kill, stop or fail this process; free and inert unless a test arms them.

Points are addressed by the order in which they are hit, since names repeat: `arm(7, "kill")`.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

_armed: Callable[[str], None] | None = None


def failpoint(name: str) -> None:
    """Here something may go wrong. Does nothing in a process that no test has armed."""
    if _armed is not None:
        _armed(name)


def arm(at: int, action: str, trace: list[str] | None = None, only: str = "") -> None:
    """At the `at`-th point from now on (0 is the next): `kill`, `stop`, or `raise` a RuntimeError; -1 only counts.

    With `only`, points of other names are not counted.
    """
    global _armed
    hits = 0

    def hit(name: str) -> None:
        nonlocal hits
        if trace is not None:
            trace.append(name)
        if only and name != only:
            return
        hits += 1
        if hits == at + 1:
            _act(action, name)

    _armed = hit


def disarm() -> None:
    """Back to inert."""
    global _armed
    _armed = None


def _act(action: str, name: str) -> None:
    match action:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        case _:
            raise RuntimeError(f"failpoint {name}")

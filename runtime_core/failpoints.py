"""Named points at which a test can kill, stop or fail this process; free and inert unless a test arms them.

Points are addressed by the order in which the arming thread hits them, since names repeat: `arm(7, "kill")`. What
other threads hit is counted only where `only` names it, since their order is nobody's. `transactions.py` puts them
around every commit and every call to the outside.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable

from django.db import OperationalError, connection

DELAY_SECONDS = 0.2

_armed: Callable[[str], None] | None = None


def failpoint(name: str, side: str) -> None:
    """Here something may go wrong. Does nothing in a process that no test has armed."""
    if _armed is not None:
        _armed(f"{name}.{side}")


def armed() -> bool:
    """True in a process in which a test lets things fail."""
    return _armed is not None


def arm(at: int, action: str, trace: list[str] | None = None, only: str = "") -> None:
    """Take an action of `ACTIONS` at the `at`-th point from now on (0 is the next); -1 only counts.

    With `only`, points of other names are not counted.
    """
    global _armed
    counting = threading.get_ident()
    hits = 0

    def hit(name: str) -> None:
        nonlocal hits
        if name != only if only else threading.get_ident() != counting:
            return
        if trace is not None:
            trace.append(name)
        hits += 1
        if hits == at + 1:
            ACTIONS[action](name)

    _armed = hit


def disarm() -> None:
    """Back to inert."""
    global _armed
    _armed = None


def _kill(name: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _stop(name: str) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _raise(name: str) -> None:
    raise RuntimeError(f"failpoint {name}")


def _delay(name: str) -> None:
    time.sleep(DELAY_SECONDS)


def _drop(name: str) -> None:
    """The network forgets the session; whoever uses it next finds out."""
    if connection.connection is None or connection.connection.closed:
        return
    with socket.socket(fileno=os.dup(connection.connection.fileno())) as link:
        link.shutdown(socket.SHUT_RDWR)


def _lose_answer(name: str) -> None:
    """After a commit: it is there, and who sent it only sees that the connection broke."""
    connection.close()
    raise OperationalError("server closed the connection unexpectedly")


def _lose_message(name: str) -> None:
    """Before a hint: it does not arrive."""
    raise ConnectionError(f"failpoint {name}")


ACTIONS: dict[str, Callable[[str], None]] = {
    "kill": _kill,
    "stop": _stop,
    "raise": _raise,
    "delay": _delay,
    "drop": _drop,
    "lose_answer": _lose_answer,
    "lose_message": _lose_message,
}

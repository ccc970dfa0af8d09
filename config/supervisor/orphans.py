"""Processes that lost their parent come to the supervisor, so that none can be left behind."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36


def adopt() -> None:
    """Ask the kernel to give us every descendant whose parent ends."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def reap(known: Collection[int]) -> None:
    """Clear the adopted processes that have ended. The known ones have an owner who asks."""
    for pid in children():
        if pid not in known:
            _reap_one(pid)


def end_all(within_s: float) -> None:
    """Kill every process that is still below us, and what that sets free, until none is left."""
    deadline = time.monotonic() + within_s
    while (left := children()) and time.monotonic() < deadline:
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            _reap_one(pid)
        time.sleep(0.02)


def children() -> list[int]:
    """List the processes whose parent we are."""
    us, found = os.getpid(), []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and _parent_of(entry) == us:
            found.append(int(entry.name))
    return found


def _parent_of(entry: Path) -> int | None:
    try:
        # The name in brackets may contain anything; the parent is the second field after it.
        return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return None


def _reap_one(pid: int) -> None:
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)

"""What a killed worker can leave behind: a bubblewrap that waits for ever for a parent it has lost.

There is one moment, before the command exists, in which bubblewrap's first process does not die
with its parent yet. It runs nothing and holds nothing but a little memory; the next worker takes it
off the process table.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_NAME = "bwrap"


def sweep() -> int:
    """Kill the bubblewrap processes of ours that have lost their parent; how many that were."""
    killed = 0
    for pid in _orphans():
        with suppress(OSError):
            handle = os.pidfd_open(pid)
            try:
                if _is_orphan(pid):  # still the same process, now that its number cannot be reused
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
                    killed += 1
            finally:
                os.close(handle)
    return killed


def _orphans() -> Iterator[int]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and _is_orphan(int(folder.name)):
            yield int(folder.name)


def _is_orphan(pid: int) -> bool:
    """The first process of a sandbox of ours, in a namespace of its own, without a bubblewrap as
    its parent.
    """
    folder = Path(f"/proc/{pid}")
    try:
        if folder.stat().st_uid != os.getuid() or _name(pid) != _NAME:
            return False
        if (folder / "ns" / "pid").readlink() == Path("/proc/self/ns/pid").readlink():
            return False
        if b"\0--json-status-fd\0" not in (folder / "cmdline").read_bytes():
            return False
        parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        return parent <= 1 or _name(parent) != _NAME
    except (OSError, ValueError):
        return False


def _name(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()

"""What the processes of one sandbox use together, read from the sandbox's own /proc."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Usage:
    """Resident bytes and number of processes at one moment."""

    memory_bytes: int
    processes: int


def usage(first_process: int) -> Usage:
    """What all processes in the pid namespace of `first_process` use now; zeros once it is gone."""
    # Its own /proc shows the processes of that namespace alone, however many others run on the
    # machine.
    proc = Path(f"/proc/{first_process}/root/proc")
    pages = processes = 0
    with suppress(OSError):
        if proc.stat().st_dev == Path("/proc").stat().st_dev:
            return Usage(0, 0)  # still on the machine's own root: it has not moved in yet
        for entry in proc.iterdir():
            if not entry.name.isdigit():
                continue
            processes += 1
            with suppress(OSError, ValueError, IndexError):
                pages += int((entry / "statm").read_bytes().split()[1])
    return Usage(pages * _PAGE, processes)

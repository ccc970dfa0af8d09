"""One `up` a data folder: a lock that the kernel frees however its holder ends."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any


class AlreadyRunning(Exception):
    """Another process holds the data folder; the message says which."""


class FolderLock:
    """Holds a data folder, and tells others who holds it and where it serves."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("a+")

    def take(self, **facts: Any) -> None:
        """Take the lock and write who we are; raise `AlreadyRunning` if it is held."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = read_holder(self.path)
            self._file.close()
            raise AlreadyRunning(
                f"Interlock already runs on {self.path.parent} (process {holder.get('pid', '?')}, "
                f"port {holder.get('port', '?')}); stop it first, or set INTERLOCK_DATA_DIR"
            ) from error
        self.write(**facts)

    def write(self, **facts: Any) -> None:
        """Replace what others read about us."""
        self._file.seek(0)
        self._file.truncate()
        self._file.write(json.dumps({"pid": os.getpid(), **facts}))
        self._file.flush()

    def release(self) -> None:
        """Give the folder free. The file stays: removing it would let two holders in."""
        self._file.seek(0)
        self._file.truncate()
        self._file.close()


def read_holder(path: Path) -> dict[str, Any]:
    """Read who holds the folder: `pid`, `port`, `ready`; empty where nobody alive does."""
    try:
        facts = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    if not isinstance(facts, dict) or not Path(f"/proc/{facts.get('pid')}").exists():
        return {}
    return facts

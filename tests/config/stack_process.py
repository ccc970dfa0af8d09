"""A real `manage.py up` on a folder and port of its own, and what /proc knows about it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path

from config.supervisor.lock import read_holder

BASE = Path(__file__).resolve().parents[2]
INHERITED = ("PATH", "HOME", "LANG", "TMPDIR")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(condition: Callable[[], object], within_s: float = 20.0, what: str = "") -> None:
    """Return when the condition holds; fail the test when it takes too long."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {within_s} s: {what or condition}"
        time.sleep(0.05)


def command_env(folder: Path, port: int, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """What a user's shell would have, and nothing of this test session."""
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return {**inherited, "INTERLOCK_DATA_DIR": str(folder), "PORT": str(port), **(more or {})}


def manage(
    *arguments: str, folder: Path, port: int = 1, more: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run one command to its end."""
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=BASE,
        env=command_env(folder, port, more),
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


class RunningStack:
    """One `up` in the background."""

    def __init__(self, folder: Path, more: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.port = free_port()
        self.log = folder.parent / f"{folder.name}.out"
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "up"],
                cwd=BASE,
                start_new_session=True,
                env=command_env(folder, self.port, more),
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def wait_until_ready(self, within_s: float = 60) -> RunningStack:
        def ready() -> bool:
            assert self.process.poll() is None, self.log.read_text()[-3000:]
            holder = read_holder(self.folder / "up.lock")
            return bool(holder.get("ready")) and holder["pid"] == self.process.pid

        wait_for(ready, within_s, "ready")
        return self

    def get(self, path: str) -> tuple[int, dict[str, str]]:
        """Answer status (0: nobody serves) and JSON of a page."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)
        except OSError:
            return 0, {}

    def pid_of(self, word: str) -> int | None:
        """The lowest pid of this stack whose command line has the word."""
        found = [pid for pid in self.processes() if word in _command_line(pid)]
        return min(found, default=None)

    def processes(self) -> list[int]:
        """Every live process that works on this folder, supervisor included."""
        numbers = (entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit())
        return [pid for pid in map(int, numbers) if self._owns(pid)]

    def end(self, number: signal.Signals) -> int:
        """Signal the supervisor and wait for it."""
        self.process.send_signal(number)
        return self.process.wait(30)

    def _owns(self, pid: int) -> bool:
        mark = str(self.folder).encode()
        proc = Path(f"/proc/{pid}")
        try:
            if ") Z " in (proc / "stat").read_text():
                return False
            return (
                mark in (proc / "cmdline").read_bytes() or mark in (proc / "environ").read_bytes()
            )
        except OSError:
            return False


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:  # it has ended since it was listed
        return ""

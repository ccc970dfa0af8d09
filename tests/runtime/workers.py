"""Real Celery workers for tests: started, killed, stopped and ended by pid."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from celery import current_app

from tests.runtime.world import wait_until


@dataclass
class Worker:
    """One worker process on the session's test database and broker."""

    env: dict[str, str]
    threads: int = 4
    level: str = "INFO"
    log: IO[bytes] = field(default_factory=tempfile.TemporaryFile)

    def start(self) -> Worker:
        command = [
            sys.executable,
            "-m",
            "celery",
            "-A",
            "config",
            "worker",
            "--pool",
            "threads",
            "--concurrency",
            str(self.threads),
            "--loglevel",
            self.level,
            "--without-gossip",
            "--without-mingle",
            "--without-heartbeat",
        ]
        self.process = subprocess.Popen(
            command, env=self.env, stdout=self.log, stderr=self.log, start_new_session=True
        )
        wait_until(lambda: self.ready or self.ended, 40, "the worker is ready")
        assert not self.ended, self.output
        return self

    @property
    def output(self) -> str:
        self.log.seek(0)
        return self.log.read().decode("utf-8", "replace")

    @property
    def ready(self) -> bool:
        return " ready." in self.output

    @property
    def ended(self) -> bool:
        return self.process.poll() is not None

    def signal(self, number: int) -> None:
        os.kill(self.process.pid, number)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(10)

    def stop(self) -> None:
        if not self.ended:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()
        print(self.output[-8_000:])  # shown by pytest where the test failed
        self.log.close()


def advance(run_id: object) -> None:
    """Send the hint that a web process would send."""
    current_app.send_task("runtime_core.advance", args=[str(run_id)], retry=False)


def processes_with(marker: str) -> list[int]:
    """Processes whose environment or command line holds the marker, this one and zombies excepted."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            text = (folder / "environ").read_bytes() + (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if marker.encode() in text and int(folder.name) != os.getpid():
            found.append(int(folder.name))
    return found

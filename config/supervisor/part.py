"""One part of the product (web, worker, beat, a service): started, watched, started again."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from config.services.process import ServiceFailed
from config.supervisor.output import say

FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 30.0
# A part that ran this long is taken to be well again.
STEADY_S = 60.0
MOST_CRASHES = 8


class PartFailed(Exception):
    """A part ended again and again; the message says which and where to look."""


@dataclass
class Part:
    """A supervised process. `start` makes a new one and returns when it may be relied on."""

    name: str
    start: Callable[[], subprocess.Popen[bytes]]
    process: subprocess.Popen[bytes] | None = None
    crashes: int = 0
    started_at: float = 0.0
    due_at: float | None = field(default=None)

    def launch(self) -> None:
        """Start the process."""
        self.due_at = None
        self.started_at = time.monotonic()
        self.process = self.start()

    def look_after(self) -> None:
        """Start the process again when it has ended, later each time; give up at some point."""
        if self.due_at is not None:
            if time.monotonic() >= self.due_at:
                self._try_again()
        elif self.process is not None and self.process.poll() is not None:
            end_group(self.process.pid, signal.SIGKILL)
            self._note_crash(describe_end(self.process.returncode))

    def _try_again(self) -> None:
        try:
            self.launch()
        except ServiceFailed as error:
            self._note_crash(f"did not start ({error})")

    def _note_crash(self, how: str) -> None:
        now = time.monotonic()
        if now - self.started_at > STEADY_S:
            self.crashes = 0
        self.crashes += 1
        if self.crashes > MOST_CRASHES:
            raise PartFailed(f"{self.name} {how}, {self.crashes} times in a row; see its log")
        delay = min(FIRST_DELAY_S * 2 ** (self.crashes - 1), LONGEST_DELAY_S)
        self.due_at = now + delay
        say(f"{self.name} {how}; starting it again in {delay:g} s")

    def signal_group(self, number: signal.Signals) -> None:
        """Signal the process and everything in its group."""
        if self.process is not None:
            end_group(self.process.pid, number)

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None


def end_group(leader: int, number: signal.Signals) -> None:
    """Signal a whole process group, which may be gone."""
    with suppress(ProcessLookupError):
        os.killpg(leader, number)


def describe_end(code: int | None) -> str:
    """Say in words how a process ended."""
    if code is not None and code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with status {code}"

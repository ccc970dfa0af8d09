"""One embedded service as a process: wait until it answers, end it, clear what a dead one left."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

POLL_S = 0.02
MOST_LOG_BYTES = 10_000_000


class ServiceFailed(Exception):
    """An embedded service did not start; the message says where to look."""


def wait_until_ready(
    process: subprocess.Popen[bytes],
    answers: Callable[[], bool],
    *,
    name: str,
    log: Path,
    within_s: float,
) -> None:
    """Return when the service answers; raise `ServiceFailed` if it ends or takes too long."""
    deadline = time.monotonic() + within_s
    while not answers():
        if process.poll() is not None:
            raise ServiceFailed(f"{name} ended at once ({_last_line(log)}); see {log}")
        if time.monotonic() > deadline:
            end(process, (signal.SIGKILL,), within_s=1)
            raise ServiceFailed(f"{name} did not answer within {within_s:.0f} s; see {log}")
        time.sleep(POLL_S)


def end(
    process: subprocess.Popen[bytes], signals: tuple[signal.Signals, ...], *, within_s: float
) -> None:
    """Send one signal after another, each with its share of the time, until the process is gone."""
    for number in signals:
        if process.poll() is not None:
            return
        process.send_signal(number)
        try:
            process.wait(within_s / len(signals))
        except subprocess.TimeoutExpired:
            continue


def wait_for_leftover(
    pid: int | None, program: str, signals: tuple[signal.Signals, ...], *, within_s: float
) -> None:
    """Wait for a program of an earlier start that is still ending, and press it if need be."""
    if pid is None or not runs(pid, program):
        return
    for number in signals:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return
        deadline = time.monotonic() + within_s / len(signals)
        while time.monotonic() < deadline:
            if not runs(pid, program):
                return
            time.sleep(POLL_S)


def runs(pid: int, program: str) -> bool:
    """Say whether this pid is now a process of that program (pids are used again)."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip() == program
    except OSError:
        return False


def keep_short(log: Path) -> None:
    """Set a long log aside, in place of the one set aside before."""
    if log.exists() and log.stat().st_size > MOST_LOG_BYTES:
        log.replace(log.with_name(f"{log.name}.1"))


def read_pid(path: Path) -> int | None:
    """Read a pid file's first line, or None where there is no usable one."""
    try:
        return int(path.read_text().split("\n", 1)[0])
    except (OSError, ValueError):
        return None


def _last_line(log: Path) -> str:
    try:
        lines = log.read_text(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return lines[-1][:300] if lines else "no output"

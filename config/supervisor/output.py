"""What the parts say: all of it in a file each, what matters on the terminal."""

from __future__ import annotations

import json
import logging
import logging.handlers
import subprocess
import sys
import threading
from pathlib import Path

MAX_LINE_BYTES = 64 * 1024
MAX_FILE_BYTES = 10_000_000
QUIET_LEVELS = frozenset({"debug", "info"})


def say(line: str) -> None:
    """Print one line for the person at the terminal, who may be gone."""
    try:
        print(line, flush=True)
    except OSError:
        sys.stdout = sys.stderr


def follow(process: subprocess.Popen[bytes], name: str, log: Path) -> threading.Thread:
    """Copy a process's output until it ends, in a thread of its own."""
    thread = threading.Thread(
        target=_copy, args=(process, name, log), daemon=True, name=f"log-{name}"
    )
    thread.start()
    return thread


def for_terminal(line: str) -> str | None:
    """Say how a line of a part's log looks on the terminal, or None if it is not worth it."""
    try:
        entry = json.loads(line)
    except ValueError:
        return line or None
    if not isinstance(entry, dict) or "level" not in entry:
        return line
    if entry["level"] in QUIET_LEVELS:
        return None
    # The first line says what, an exception's last line says why; the file has the rest.
    text = f"{entry['level']}: {_line(entry.get('event'), 0)}"
    if entry.get("exception"):
        text = f"{text}: {_line(entry['exception'], -1)}"
    return f"{text} [{entry['logger']}]" if entry.get("logger") else text


def _line(text: object, which: int) -> str:
    lines = str(text or "").strip().splitlines()
    return lines[which] if lines else ""


class _LogFile(logging.handlers.RotatingFileHandler):
    """A full disk must not stop the reading: a part would wait for ever on its pipe."""

    def handleError(self, record: logging.LogRecord) -> None:
        return


def _copy(process: subprocess.Popen[bytes], name: str, log: Path) -> None:
    file = _LogFile(log, maxBytes=MAX_FILE_BYTES, backupCount=1, delay=True)
    assert process.stdout is not None  # noqa: S101 (started with a pipe)
    with process.stdout as pipe:
        while raw := pipe.readline(MAX_LINE_BYTES):
            line = raw.decode(errors="replace").rstrip()
            file.emit(logging.makeLogRecord({"msg": line}))
            if (shown := for_terminal(line)) is not None:
                say(f"{name:<8} | {shown}")
    file.close()

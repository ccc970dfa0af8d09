"""No path leads out of the workspace or into its repository."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from runtime_core.errors import InvalidArguments, ToolError, ToolFailed, WorkspaceError
from runtime_core.tools import files

_OUT = [
    "../secret", "src/../../secret", "..", "/etc/passwd", "//etc/passwd", "/", "src/../notes.txt",
    ".git/config", ".git/hooks/post-commit", ".git", "src/../.git/config", "./.git/config",
    ".GIT/config",
    "link_out/secret", "link_up", "link_secret", "link_git/config", "a\0b", "", "x" * 5_000,
    "sub/.git/config", "loop/x",
]  # fmt: skip


@pytest.fixture
def trapped(workspace: Path) -> Path:
    """The workspace with links that lead out of it."""
    (workspace.parent / "secret").write_text("hidden")
    (workspace / "link_out").symlink_to(workspace.parent)
    (workspace / "link_up").symlink_to("..")
    (workspace / "link_secret").symlink_to("../secret")
    (workspace / "link_git").symlink_to(".git")
    (workspace / "loop").symlink_to("loop")
    (workspace / "link_in").symlink_to("src/a.py")
    return workspace


@pytest.mark.parametrize("path", _OUT)
def test_it_reads_and_writes_nothing_outside(trapped: Path, path: str) -> None:
    with pytest.raises(ToolError):
        files.read(trapped, path)
    with pytest.raises(ToolError):
        files.write(trapped, path, b"overwritten")
    assert (trapped.parent / "secret").read_text() == "hidden"
    assert "overwritten" not in (trapped / ".git" / "config").read_text()
    assert not (trapped / "sub").exists()


@pytest.mark.parametrize("path", ["..", "/", "link_up", ".git", "notes.txt"])
def test_it_lists_nothing_outside(trapped: Path, path: str) -> None:
    with pytest.raises(ToolError):
        files.listing(trapped, path)


def test_links_within_the_workspace_are_followed(trapped: Path) -> None:
    assert files.read(trapped, "link_in") == b"one\ntwo\nthree\n"
    files.write(trapped, "link_in", b"new")
    assert (trapped / "src" / "a.py").read_bytes() == b"new"
    assert (trapped / "link_in").is_symlink()


def test_a_link_that_is_swapped_in_after_the_check_is_not_followed(
    trapped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = files._inside

    def and_swapped(workspace: Path, path: str) -> list[str]:
        parts = checked(workspace, path)
        (workspace / "src").rename(workspace / "src_before")
        (workspace / "src").symlink_to(workspace.parent)
        return parts

    monkeypatch.setattr(files, "_inside", and_swapped)
    with pytest.raises(ToolFailed):
        files.write(trapped, "src/secret", b"overwritten")
    assert (trapped.parent / "secret").read_text() == "hidden"


def test_a_listing_shows_links_and_leaves_out_the_repository(trapped: Path) -> None:
    found, more = files.listing(trapped, ".")
    assert not more
    assert "src/a.py" in found and "notes.txt" in found
    assert "link_in -> src/a.py" in found
    assert not any(".git" in name.split(" -> ")[0] for name in found)


def test_a_listing_is_bounded(workspace: Path) -> None:
    for i in range(files.MAX_LISTED + 1):
        (workspace / f"f{i}").touch()
    found, more = files.listing(workspace, ".")
    assert (len(found), more) == (files.MAX_LISTED, True)


def test_names_of_any_bytes_can_be_listed(workspace: Path) -> None:
    (Path(os.fsdecode(os.fsencode(workspace) + b"/n\xff\xfe"))).touch()
    found, _ = files.listing(workspace, ".")
    assert "n\ufffd\ufffd" in found


def test_what_is_no_regular_file_is_not_read(workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")
    with pytest.raises(ToolFailed, match="not a regular file"):
        files.read(workspace, "pipe")
    with pytest.raises(ToolFailed, match="not a regular file"):
        files.write(workspace, "pipe", b"x")
    with pytest.raises(ToolFailed, match="directory"):
        files.read(workspace, "src")


def test_large_files_are_refused_with_the_way_out(workspace: Path) -> None:
    with (workspace / "big").open("wb") as file:
        file.truncate(files.MAX_FILE_BYTES + 1)
    with pytest.raises(ToolFailed, match="2000001 bytes, more than 2000000"):
        files.read(workspace, "big")
    with pytest.raises(ToolFailed, match="more than"):
        files.write(workspace, "new", b"x" * (files.MAX_FILE_BYTES + 1))
    assert not (workspace / "new").exists()


def test_a_file_is_written_as_a_whole(workspace: Path) -> None:
    assert files.write(workspace, "deep/er/new.txt", "é\r\n".encode()) is True
    assert files.write(workspace, "deep/er/new.txt", b"again") is False
    assert (workspace / "deep" / "er" / "new.txt").read_bytes() == b"again"
    assert [p.name for p in (workspace / "deep" / "er").iterdir()] == ["new.txt"]


def test_the_mode_of_a_file_is_kept(workspace: Path) -> None:
    (workspace / "run.sh").write_text("#!/bin/sh\n")
    (workspace / "run.sh").chmod(0o755)
    files.write(workspace, "run.sh", b"#!/bin/sh\ntrue\n")
    assert (workspace / "run.sh").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_said_and_leaves_the_old_file(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def full(fd: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WorkspaceError, match="Free space in the data folder"):
        files.write(workspace, "notes.txt", b"new")
    assert (workspace / "notes.txt").read_text() == "hello\n"
    assert sorted(p.name for p in workspace.iterdir()) == [".git", "notes.txt", "src"]


def test_a_missing_file_is_named(workspace: Path) -> None:
    with pytest.raises(ToolFailed, match=r"nowhere\.txt: No such file"):
        files.read(workspace, "nowhere.txt")


def test_the_way_out_is_named(workspace: Path) -> None:
    with pytest.raises(InvalidArguments, match="relative to it"):
        files.read(workspace, "/etc/passwd")

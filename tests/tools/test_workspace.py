"""A run's workspace is its own, made once and as a whole."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import uuid
from pathlib import Path
from typing import Any

import pytest

from runtime_core.errors import WorkspaceError
from runtime_core.tools import repository, workspace
from runtime_core.tools.preview import file_diff, preview


@pytest.fixture
def base(tmp_path: Path, settings: Any) -> Path:
    """A project folder with a plain folder in it, and a data folder of its own."""
    settings.BASE_DIR, settings.DATA_DIR = tmp_path / "base", tmp_path / "data"
    (tmp_path / "base" / "fixture" / "pkg").mkdir(parents=True)
    (tmp_path / "base" / "fixture" / "pkg" / "a.py").write_text("a = 1\n")
    (tmp_path / "base" / "fixture" / "run.sh").write_text("#!/bin/sh\n")
    (tmp_path / "base" / "fixture" / "run.sh").chmod(0o755)
    return tmp_path / "base"


def git(folder: Path, *argv: str) -> str:
    done = subprocess.run(["git", *argv], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def test_a_plain_folder_becomes_a_repository(base: Path) -> None:
    run_id = uuid.UUID(int=1)
    made = workspace.prepare(run_id, "fixture")
    assert made == base.parent / "data" / "workspaces" / str(run_id)
    assert (made / "pkg" / "a.py").read_text() == "a = 1\n"
    assert os.access(made / "run.sh", os.X_OK)
    assert git(made, "status", "--porcelain") == ""
    assert git(made, "rev-list", "--count", "HEAD") == "1\n"
    assert not (base / "fixture" / ".git").exists()
    assert [p.name for p in made.parent.iterdir()] == [str(run_id)]


def test_preparing_again_changes_nothing(base: Path) -> None:
    made = workspace.prepare(uuid.UUID(int=1), "fixture")
    (made / "pkg" / "a.py").write_text("a = 2\n")
    shutil.rmtree(base / "fixture")
    assert workspace.prepare(uuid.UUID(int=1), "fixture") == made
    assert (made / "pkg" / "a.py").read_text() == "a = 2\n"


def test_each_run_has_its_own(base: Path) -> None:
    one, two = (workspace.prepare(uuid.UUID(int=i), "fixture") for i in (1, 2))
    (one / "pkg" / "a.py").write_text("changed")
    assert (two / "pkg" / "a.py").read_text() == "a = 1\n"


def test_two_workers_at_once_end_with_one_whole_workspace(base: Path) -> None:
    made: list[Path] = []
    threads = [
        threading.Thread(target=lambda: made.append(workspace.prepare(uuid.UUID(int=3), "fixture")))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(made) == 4 and len(set(made)) == 1
    assert git(made[0], "status", "--porcelain") == ""
    assert [p.name for p in made[0].parent.iterdir()] == [str(uuid.UUID(int=3))]


def test_k5_a_repository_is_cloned_without_what_it_would_run(base: Path, tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    shutil.copytree(base / "fixture", origin)
    repository.start(origin)
    hook = origin / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/HOOK\n")
    hook.chmod(0o755)
    git(origin, "config", "core.fsmonitor", f"touch {tmp_path}/HOOK; false")
    (origin / "uncommitted").touch()
    if os.getuid() == 0:
        for path in (origin, *origin.rglob("*")):
            os.chown(path, 12345, 12345)
    made = workspace.prepare(uuid.UUID(int=4), str(origin))
    assert (made / "pkg" / "a.py").read_text() == "a = 1\n"
    assert not (made / "uncommitted").exists()
    assert git(made, "remote") == ""
    assert not (tmp_path / "HOOK").exists()
    assert not list((made / ".git").glob("hooks/*"))
    assert [p.name for p in made.parent.iterdir()] == [made.name]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("nowhere", "is not there"),
        ("fixture/run.sh", "is not there or not a folder"),
        ("../outside", "not below the project"),
        ("", "name a folder"),
        ("a\0b", "name a folder"),
        (".", "not below the project"),
        ("/usr", "not a git repository"),
        ("/no/such/folder", "is not there"),
    ],
)
def test_a_source_that_cannot_be_used_is_named(base: Path, source: str, said: str) -> None:
    with pytest.raises(WorkspaceError, match=said):
        workspace.prepare(uuid.UUID(int=5), source)
    assert not workspace.path_of(uuid.UUID(int=5)).exists()


def test_a_repository_without_a_commit_is_named_or_empty(base: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    (broken / ".git").mkdir(parents=True)
    with pytest.raises(WorkspaceError, match="git clone failed"):
        workspace.prepare(uuid.UUID(int=6), str(broken))
    assert list((base.parent / "data" / "workspaces").iterdir()) == []


def test_what_is_no_file_is_refused(base: Path) -> None:
    os.mkfifo(base / "fixture" / "pipe")
    with pytest.raises(WorkspaceError, match="neither a file nor a link"):
        workspace.prepare(uuid.UUID(int=7), "fixture")


def test_a_full_disk_is_said(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object, **more: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copytree", full)
    with pytest.raises(WorkspaceError, match="the disk is full"):
        workspace.prepare(uuid.UUID(int=8), "fixture")


def test_removing_takes_all_of_it(base: Path) -> None:
    made = workspace.prepare(uuid.UUID(int=9), "fixture")
    (made.parent / f".{made.name}.left").mkdir()
    workspace.remove(uuid.UUID(int=9))
    workspace.remove(uuid.UUID(int=9))
    assert list(made.parent.iterdir()) == []


def test_a_run_id_is_no_path(base: Path) -> None:
    with pytest.raises(ValueError, match="hexadecimal"):
        workspace.prepare("../../x", "fixture")


def test_a_change_of_a_file_is_shown_as_a_diff(base: Path) -> None:
    made = workspace.prepare(uuid.UUID(int=1), "fixture")
    shown = preview("write_file", {"path": "pkg/a.py", "content": "a = 2\nb = 3"}, made)
    assert shown == {
        "kind": "diff",
        "path": "pkg/a.py",
        "diff": "--- a/pkg/a.py\n+++ b/pkg/a.py\n@@ -1 +1,2 @@\n-a = 1\n+a = 2\n+b = 3\n"
        "\\ No newline at end of file\n",
        "truncated": False,
        "note": "",
    }


def test_notes_on_what_a_diff_cannot_show(base: Path) -> None:
    made = workspace.prepare(uuid.UUID(int=1), "fixture")
    (made / "binary").write_bytes(b"\xff")
    assert file_diff(made, "new.py", "x\n")["note"] == "A new file."
    assert "+x\n" in file_diff(made, "new.py", "x\n")["diff"]
    assert "already" in file_diff(made, "pkg/a.py", "a = 1\n")["note"]
    assert "not text" in file_diff(made, "binary", "x\n")["note"]
    assert "leads out" in file_diff(made, "../x", "x\n")["note"]


def test_a11_separators_and_controls_stay_within_their_line(base: Path) -> None:
    made = workspace.prepare(uuid.UUID(int=1), "fixture")
    content = "safe\u2028rm -rf /w\x0b\x85\r\x1b[2K\u202eend\n"
    assert f"+{content}" in file_diff(made, "pkg/a.py", content)["diff"]


def test_a_huge_change_is_shown_in_time_and_bounded(base: Path) -> None:
    made = workspace.prepare(uuid.UUID(int=1), "fixture")
    (made / "long").write_text("same\n" * 100_000)
    content = "same\n" * 50_000 + "other\n" * 50_000
    shown = file_diff(made, "long", content)
    assert shown["truncated"] and shown["diff"].startswith("--- a/long\n+++ b/long\n@@ -50001,")
    small = file_diff(made, "long", "same\n" * 99_999 + "end\n")
    assert not small["truncated"]
    assert small["diff"].endswith("@@ -100000,1 +100000,1 @@\n-same\n+end\n")


def test_other_calls_are_shown_as_they_are(base: Path) -> None:
    assert preview("run_command", {"argv": ["ls", "-l"]}, None) == {
        "kind": "argv",
        "argv": ["ls", "-l"],
    }
    assert preview("run_command", {"argv": "ls"}, None)["kind"] == "json"
    assert preview("apply_patch", {"patch": "--- a/x\n+++ b/x\n"}, None)["path"] == "x"
    assert preview("issue_refund", {"amount": 1}, None) == {"kind": "json", "args": {"amount": 1}}
    assert preview("write_file", {"path": "x", "content": 1}, base)["kind"] == "json"

"""The built-in tools on a real repository, in the real sandbox."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runtime_core.tools import ToolContext, registry, runner
from runtime_core.values import Json, ToolOutcome

_PATCH = """\
--- a/src/a.py
+++ b/src/a.py
@@ -1,3 +1,3 @@
 one
-two
+2
 three
--- /dev/null
+++ b/src/new.py
@@ -0,0 +1 @@
+new
"""


@pytest.fixture
def use(ctx: ToolContext) -> Callable[..., ToolOutcome]:
    """Runs a tool by its name, as the loop does."""

    def call(name: str, on: ToolContext = ctx, **args: Json) -> ToolOutcome:
        return runner.run(registry()[name], args, on)

    return call


def git(workspace: Path, *argv: str) -> str:
    return subprocess.run(
        ["git", *argv], cwd=workspace, capture_output=True, text=True, check=True
    ).stdout


def test_reading(use: Callable[..., ToolOutcome], workspace: Path) -> None:
    assert use("list_files").result == {"files": ["notes.txt", "src/a.py"]}
    assert use("list_files", path="src").result == {"files": ["src/a.py"]}
    assert use("read_file", path="notes.txt").result == {"path": "notes.txt", "content": "hello\n"}
    (workspace / "b").write_bytes(b"\xff\0")
    assert use("read_file", path="b").result["binary"] is True


def test_writing(use: Callable[..., ToolOutcome], workspace: Path) -> None:
    written = use("write_file", path="src/b/c.py", content="é\n")
    assert written.result == {"path": "src/b/c.py", "bytes": 3, "created": True}
    assert (workspace / "src" / "b" / "c.py").read_text() == "é\n"
    assert use("write_file", path="../x", content="").error_code == "invalid_arguments"


def test_a_command(use: Callable[..., ToolOutcome]) -> None:
    assert use("run_command", argv=["cat", "notes.txt"]).result == {
        "exit_code": 0,
        "output": "hello\n",
    }
    failed = use("run_command", argv=["sh", "-c", "echo no >&2; exit 4"])
    assert (failed.status, failed.result) == ("succeeded", {"exit_code": 4, "output": "no\n"})
    late = use("run_command", argv=["sleep", "30"], timeout_s=1)
    assert late.status == "succeeded"
    assert late.result["status"] == "timed_out"
    assert late.result["note"] == "Ended after 1 s, before it was done."


def test_a_patch_is_applied_once(use: Callable[..., ToolOutcome], workspace: Path) -> None:
    first = use("apply_patch", patch=_PATCH)
    assert first.result == {"paths": ["src/a.py", "src/new.py"], "already_applied": False}
    assert (workspace / "src" / "a.py").read_text() == "one\n2\nthree\n"
    assert use("apply_patch", patch=_PATCH).result["already_applied"] is True
    assert (workspace / "src" / "new.py").read_text() == "new\n"


def test_a_patch_without_prefixes_and_with_wrong_counts(
    use: Callable[..., ToolOutcome], workspace: Path
) -> None:
    patch = "--- notes.txt\n+++ notes.txt\n@@ -1,9 +1,9 @@\n-hello\n+bye"
    assert use("apply_patch", patch=patch).status == "succeeded"
    assert (workspace / "notes.txt").read_text() == "bye\n"


@pytest.mark.parametrize(
    "patch",
    [
        "nothing like a patch",
        _PATCH.replace("two", "deux"),
        "--- a/../x\n+++ b/../x\n@@ -0,0 +1 @@\n+x\n",
        "--- /dev/null\n+++ b/.git/hooks/post-commit\n@@ -0,0 +1 @@\n+x\n",
        "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc\n",
    ],
)
def test_a_patch_that_does_not_fit_changes_nothing(
    use: Callable[..., ToolOutcome], workspace: Path, patch: str
) -> None:
    assert use("apply_patch", patch=patch).status == "failed"
    assert git(workspace, "status", "--porcelain") == ""


def test_a_patch_through_a_link_stays_inside(
    use: Callable[..., ToolOutcome], workspace: Path
) -> None:
    (workspace / "out").symlink_to(workspace.parent)
    patch = "--- /dev/null\n+++ b/out/made\n@@ -0,0 +1 @@\n+x\n"
    assert use("apply_patch", patch=patch).status == "failed"
    assert not (workspace.parent / "made").exists()


def test_a_commit_is_made_once(use: Callable[..., ToolOutcome], workspace: Path) -> None:
    use("write_file", path="notes.txt", content="bye\n")
    (workspace / "src" / "a.py").unlink()
    first = use("git_commit", message="Say bye\n\nInterlock-Call: another")
    assert first.result["committed"] is True
    assert first.result["files"] == ["notes.txt", "src/a.py"]
    assert git(workspace, "status", "--porcelain") == ""
    use("write_file", path="notes.txt", content="more\n")
    assert use("git_commit", message="Say bye").result == first.result
    assert git(workspace, "rev-list", "--count", "HEAD") == "2\n"
    body = git(workspace, "log", "-1", "--format=%an|%B")
    assert body.startswith("Interlock agent|Say bye\n")
    assert "Interlock-Call: key-1" in body and "another" not in body


def test_a_commit_of_nothing_says_so(use: Callable[..., ToolOutcome], workspace: Path) -> None:
    outcome = use("git_commit", message="Nothing")
    assert outcome.status == "succeeded"
    assert outcome.result["committed"] is False
    assert git(workspace, "rev-list", "--count", "HEAD") == "1\n"


def test_k5_a_commit_runs_nothing_of_the_repository(
    use: Callable[..., ToolOutcome], workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def script(path: Path, mark: str) -> None:
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch {workspace}/{mark} /workspace/{mark}\ncat\n")
        path.chmod(0o755)

    for hook in (
        "pre-commit",
        "commit-msg",
        "post-commit",
        "post-index-change",
        "reference-transaction",
    ):
        script(workspace / ".git" / "hooks" / hook, "HOOK")
    script(workspace / "evil.sh", "FILTER")
    (workspace / ".gitattributes").write_text("*.bin filter=evil diff=evil\n")
    for key, value in {
        "commit.gpgsign": "true", "gpg.program": "false", "core.fsmonitor": "/workspace/evil.sh",
        "core.hooksPath": ".git/hooks", "core.pager": "/workspace/evil.sh",
    }.items():  # fmt: skip
        git(workspace, "config", key, value)
    (workspace / ".git" / "index.lock").touch()
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere/index")
    content = b"\xff\xfe\r\nbytes\n"
    (workspace / "x.bin").write_bytes(content)
    (workspace / "new\nline").write_bytes(b"1\r\n")
    outcome = use("git_commit", message="All of it")
    assert outcome.status == "succeeded", outcome.result
    assert not (workspace / "HOOK").exists()
    assert not (workspace / "FILTER").exists()
    monkeypatch.delenv("GIT_DIR")
    monkeypatch.delenv("GIT_INDEX_FILE")
    stored = subprocess.run(
        ["git", "cat-file", "blob", "HEAD:x.bin"], cwd=workspace, capture_output=True, check=True
    )
    assert stored.stdout == content


def test_a_workspace_that_is_no_repository_is_named(
    make_ctx: Callable[..., ToolContext], use: Callable[..., ToolOutcome], tmp_path: Path
) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    outcome = use("git_commit", on=make_ctx(workspace_path=plain), message="x")
    assert (outcome.status, outcome.error_code) == ("failed", "workspace_error")
    assert "no git repository" in outcome.result["error"]


@pytest.mark.parametrize("name", ["list_files", "run_command", "git_commit"])
def test_an_agent_without_a_workspace_is_told_so(
    make_ctx: Callable[..., ToolContext], use: Callable[..., ToolOutcome], name: str
) -> None:
    args: dict[str, Any] = {"run_command": {"argv": ["ls"]}, "git_commit": {"message": "x"}}.get(
        name, {}
    )
    outcome = use(name, on=make_ctx(workspace_path=None), **args)
    assert (outcome.status, outcome.error_code) == ("failed", "workspace_error")


def test_progress_of_a_command_is_told(
    make_ctx: Callable[..., ToolContext], use: Callable[..., ToolOutcome]
) -> None:
    told: list[str] = []
    ctx = make_ctx(on_progress=lambda message, fraction: told.append(message))
    use("run_command", on=ctx, argv=["sh", "-c", "echo first; seq 9; sleep 1; echo second"])
    assert told and "first" in told[0]

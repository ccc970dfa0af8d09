"""What a command can see, reach and use."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import settings

from runtime_core.errors import SandboxUnavailable, ToolFailed, WorkspaceError
from runtime_core.tools import ToolContext, sandbox
from runtime_core.tools.sandbox import (
    Completed,
    Sandbox,
    SandboxLimits,
    bubblewrap,
    process_bound,
)
from runtime_core.tools.sandbox.tree import Usage, usage


def run(
    workspace: Path, *argv: str, limits: SandboxLimits | None = None, **more: object
) -> Completed:
    more.setdefault("timeout", 20)
    return Sandbox(limits).run(list(argv), workspace=workspace, stop=threading.Event(), **more)


def shell(workspace: Path, script: str, **more: object) -> str:
    return run(workspace, "sh", "-c", script, **more).output


def test_only_the_workspace_and_the_programs_are_there(workspace: Path) -> None:
    hidden = [
        settings.DATA_DIR,
        Path.home() / ".bashrc",
        settings.BASE_DIR / "manage.py",
        "/var",
        "/home",
    ]
    for path in hidden:
        assert "No such file" in shell(workspace, f"ls -d {path} 2>&1"), path
    assert shell(workspace, "cat src/a.py; pwd") == "one\ntwo\nthree\n/workspace\n"
    assert shell(workspace, "cat /etc/passwd") == "agent:x:1000:1000:agent:/tmp:/bin/sh\n"
    assert "No such file" in shell(workspace, "ls /etc/shadow 2>&1")


def test_another_workspace_is_not_there(workspace: Path) -> None:
    other = workspace.parent / "other"
    other.mkdir()
    assert "No such file" in shell(workspace, f"ls {other} 2>&1")


def test_only_the_workspace_and_tmp_can_be_written(workspace: Path) -> None:
    for path in (
        "/usr/x",
        "/etc/x",
        "/x",
        "/dev/x",
        "/proc/sys/kernel/core_pattern",
        "/proc/sysrq-trigger",
    ):
        assert run(workspace, "sh", "-c", f"exec 3>>{path}").exit_code != 0, path
    assert shell(workspace, "echo new > made.txt && echo t > /tmp/t && cat /tmp/t") == "t\n"
    assert (workspace / "made.txt").read_text() == "new\n"


def test_the_repository_is_read_only_unless_asked_for(workspace: Path) -> None:
    for script in (
        "echo x > .git/hooks/post-commit",
        "mv .git moved",
        "echo x >> .git/config",
        "rm -rf .git",
    ):
        assert run(workspace, "sh", "-c", script).exit_code != 0, script
    assert "notes.txt" in shell(workspace, "git -c safe.directory='*' ls-files")
    assert run(workspace, "touch", ".git/x", repository_writable=True).exit_code == 0


def test_there_is_no_network(workspace: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)"
        done = run(workspace, "python3", "-c", code)
    assert done.exit_code == 1
    assert "refused" in done.output
    assert shell(workspace, "cat /proc/net/route | wc -l") == "1\n"


def test_nothing_of_our_environment_gets_in(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hunter2-hunter2")
    seen = shell(workspace, "env; cat /proc/*/environ | tr '\\0' '\\n'", env={"MINE": "yes"})
    assert "hunter2" not in seen
    assert "INTERLOCK" not in seen
    assert "MINE=yes" in seen
    assert "HOME=/tmp" in seen


def test_it_has_no_privileges_and_cannot_make_namespaces(workspace: Path) -> None:
    assert "CapEff:\t0000000000000000" in shell(workspace, "cat /proc/self/status")
    assert shell(workspace, "id -u") == "1000\n"
    assert run(workspace, "unshare", "-U", "true").exit_code != 0
    assert run(workspace, "mount", "-t", "tmpfs", "x", "/tmp").exit_code != 0


def test_it_sees_no_process_of_ours(workspace: Path) -> None:
    numbers = shell(workspace, "ls /proc | grep -c '^[0-9]'")
    assert int(numbers) < 8


def test_the_machines_own_processes_are_never_counted() -> None:
    assert usage(os.getpid()) == Usage(0, 0)


def test_memory_of_the_tree_is_bounded(workspace: Path) -> None:
    limits = SandboxLimits(memory_bytes=100_000_000)
    hog = "import time; x = bytearray(80_000_000); time.sleep(20)"
    script = f"python3 -c '{hog}' & python3 -c '{hog}' & wait"
    assert run(workspace, "sh", "-c", script, limits=limits).status == "memory_limit"


def test_address_space_file_size_and_tmp_are_bounded(workspace: Path) -> None:
    limits = SandboxLimits(address_bytes=500_000_000, file_bytes=1_000_000, tmp_bytes=1_000_000)
    done = run(workspace, "python3", "-c", "bytearray(10**9)", limits=limits)
    assert "MemoryError" in done.output
    big = run(workspace, "sh", "-c", "head -c 3000000 /dev/zero > big", limits=limits)
    assert big.exit_code != 0
    assert (workspace / "big").stat().st_size <= 1_000_448
    assert "No space left" in shell(workspace, "cp big /tmp/1; cp big /tmp/2", limits=limits)


def test_a_fork_bomb_is_ended(workspace: Path) -> None:
    limits = SandboxLimits(processes=60)
    done = run(workspace, "bash", "-c", ":(){ :|:& };:; sleep 5", limits=limits)
    assert done.status in ("process_limit", "memory_limit", "exited")
    assert run(workspace, "true").exit_code == 0


def test_a_command_ends_before_the_disk_is_full(workspace: Path) -> None:
    limits = SandboxLimits(spare_disk_bytes=10**18)
    fills = "while :; do head -c 1000 /dev/zero >> big; sleep 0.05; done"
    assert run(workspace, "sh", "-c", fills, limits=limits).status == "disk_limit"


def test_the_exit_code_is_the_commands(workspace: Path) -> None:
    assert run(workspace, "sh", "-c", "exit 3").exit_code == 3
    assert run(workspace, "sh", "-c", "kill -9 $$").exit_code == 137
    missing = run(workspace, "no-such-program")
    assert (missing.status, missing.exit_code) == ("exited", 127)
    assert "No such file" in missing.output


def test_words_reach_the_program_as_they_are(workspace: Path) -> None:
    words = ["$(touch P)", "; touch P", "a b", "*", "`id`", "-n", "", "\n"]
    code = "import json, sys; print(json.dumps(sys.argv[1:]))"
    assert json.loads(run(workspace, "python3", "-c", code, *words).output) == words
    assert not (workspace / "P").exists()


def test_standard_input_is_empty(workspace: Path) -> None:
    assert run(workspace, "cat", timeout=3).status == "exited"


@pytest.mark.parametrize("argv", [[], [""], "ls", ["ls", "a\0b"], [1], ["x" * 200_000]])
def test_it_refuses_an_argv_that_cannot_be_run(workspace: Path, argv: list[str]) -> None:
    with pytest.raises(ToolFailed, match=r"argv"):
        Sandbox().run(argv, workspace=workspace, timeout=1, stop=threading.Event())


def test_it_names_a_workspace_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="gone"):
        run(tmp_path / "nowhere", "true")


def test_without_bubblewrap_it_refuses_loudly(
    workspace: Path,
    make_ctx: Callable[..., ToolContext],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(bubblewrap, "_program", lambda: tmp_path / "bwrap")
    with pytest.raises(SandboxUnavailable, match="does not run"):
        make_ctx().run_command(["touch", "made"])
    denied = tmp_path / "denied"
    denied.write_text("#!/bin/sh\necho 'setting up uid map: Permission denied' >&2\nexit 1\n")
    denied.chmod(0o755)
    monkeypatch.setattr(bubblewrap, "_program", lambda: denied)
    with pytest.raises(SandboxUnavailable, match="uid map: Permission denied"):
        sandbox.check()
    assert not (workspace / "made").exists()


_AS_ANOTHER_USER = """
import os, pathlib, sys, threading
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
import django
django.setup()
from runtime_core.tools.sandbox import Sandbox
# The interpreter's own folder may be below a home that only its owner can enter.
sys.base_prefix = "/usr"
os.setgroups([]); os.setgid(12345); os.setuid(12345)
done = Sandbox().run(["sh", "-c", "id -u; echo x > made; cat made; ulimit -f"],
    workspace=pathlib.Path(sys.argv[1]), timeout=10, stop=threading.Event())
print(done.status, done.exit_code, done.output.split()[:2])
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_it_works_for_a_user_who_is_not_root() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        workspace = Path(folder) / "w"
        workspace.mkdir()
        os.chown(workspace, 12345, 12345)
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", _AS_ANOTHER_USER, str(workspace)],
            capture_output=True,
            text=True,
            timeout=30,
        )
    assert done.stdout.strip() == "exited 0 ['1000', 'x']", done.stderr


_FORKS = """
import os, time
count = 0
try:
    while count < 1500:
        if os.fork() == 0:
            time.sleep(20)
            os._exit(0)
        count += 1
except OSError:
    pass
print(count, flush=True)
"""


def test_a_command_never_has_more_processes_than_its_bound(workspace: Path) -> None:
    if not process_bound.is_available():
        pytest.skip("root, and no control group can be made here: only the watch bounds it")
    done = run(workspace, "python3", "-c", _FORKS, limits=SandboxLimits(processes=60))
    assert done.status == "exited"
    assert 10 <= int(done.output) <= 64


def test_the_bound_leaves_no_control_group_and_no_variable(workspace: Path) -> None:
    assert shell(workspace, "tr '\\0' '\\n' </proc/1/environ") == ""
    home = process_bound._home()
    assert home is None or not list(home.glob(f"interlock-{os.getpid()}-*"))

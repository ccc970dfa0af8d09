"""Nothing of a command outlives its call, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from runtime_core.tools.sandbox import Completed, Sandbox, orphan
from tests.tools.conftest import Marker

pytestmark = pytest.mark.faults

_FORKS = (
    "import os, time\nif os.fork() == 0:\n os.setsid()\n time.sleep(300)\nelse:\n time.sleep(300)"
)


def run(workspace: Path, argv: list[str], marker: Marker, timeout: float = 3) -> Completed:
    return Sandbox().run(
        argv, workspace=workspace, timeout=timeout, stop=threading.Event(), env=marker.env
    )


@pytest.mark.parametrize(
    ("argv", "status"),
    [
        (["sleep", "300"], "timed_out"),
        (["sh", "-c", "sleep 300 & sleep 300"], "timed_out"),
        (["sh", "-c", "(setsid sleep 300 &)"], "exited"),
        (["sh", "-c", "nohup sleep 300 >/dev/null 2>&1 & echo ok"], "exited"),
        (["sh", "-c", 'trap "" TERM; sleep 300'], "timed_out"),
        (["bash", "-c", 'bash -c "sleep 300; true"; true'], "timed_out"),
        (["python3", "-c", _FORKS], "timed_out"),
    ],
)
def test_i1_timeout_takes_every_descendant(
    workspace: Path, marker: Marker, argv: list[str], status: str
) -> None:
    started = time.monotonic()
    done = run(workspace, argv, marker)
    assert time.monotonic() - started <= 5.0
    assert done.status == status
    assert (done.exit_code is None) is (status == "timed_out")
    marker.wait_for(there=False, seconds=2)


def test_i1_a_child_that_keeps_the_pipe_open_delays_nothing(
    workspace: Path, marker: Marker
) -> None:
    started = time.monotonic()
    done = run(workspace, ["sh", "-c", "echo hi; sleep 300 &"], marker)
    assert time.monotonic() - started <= 1.0
    assert (done.status, done.exit_code, done.output) == ("exited", 0, "hi\n")
    marker.wait_for(there=False, seconds=2)


def test_cancel_ends_the_whole_tree(workspace: Path, marker: Marker) -> None:
    stop = threading.Event()
    found: list[Completed] = []

    def call() -> None:
        done = Sandbox().run(
            ["sh", "-c", "setsid sleep 300 & trap '' TERM; sleep 300"],
            workspace=workspace,
            timeout=60,
            stop=stop,
            env=marker.env,
        )
        found.append(done)

    thread = threading.Thread(target=call)
    thread.start()
    marker.wait_for(there=True)
    stop.set()
    thread.join(2)
    assert not thread.is_alive()
    assert found[0].status == "cancelled"
    assert marker.processes() == []


def test_a_command_that_was_cancelled_before_it_started_runs_nothing(workspace: Path) -> None:
    stop = threading.Event()
    stop.set()
    done = Sandbox().run(["touch", "made"], workspace=workspace, timeout=5, stop=stop)
    assert done.status == "cancelled"
    assert not (workspace / "made").exists()


_WORKER = """
import os, sys, threading
from pathlib import Path
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
import django
django.setup()
from runtime_core.tools.sandbox import Sandbox
Sandbox().run(["sh", "-c", "setsid sleep 300 & sleep 300"], workspace=Path(sys.argv[1]),
    timeout=float(sys.argv[3]), stop=threading.Event(), env={"INTERLOCK_MARKER": sys.argv[2]})
"""


def start_worker(workspace: Path, marker: Marker, timeout: float) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-W", "ignore", "-c", _WORKER]
    return subprocess.Popen([*argv, str(workspace), marker.value, str(timeout)])


def test_the_tree_dies_with_a_killed_worker(workspace: Path, marker: Marker) -> None:
    worker = start_worker(workspace, marker, 60)
    try:
        marker.wait_for(there=True, seconds=20)
    finally:
        worker.kill()
        worker.wait()
    marker.wait_for(there=False, seconds=2)
    _wait_until_nothing_names(workspace)


_KILLED_WORKERS = """
import os, random, signal, sys, threading, time
from pathlib import Path
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
import django
django.setup()
from runtime_core.tools.sandbox import Sandbox, check
check()
for _ in range(int(sys.argv[3])):
    worker = os.fork()
    if worker == 0:
        Sandbox().run(["sh", "-c", "setsid sleep 300 & sleep 300"], workspace=Path(sys.argv[1]),
            timeout=60, stop=threading.Event(), env={"INTERLOCK_MARKER": sys.argv[2]})
        os._exit(0)
    time.sleep(0.004 + random.random() * 0.016)  # somewhere in the start of the sandbox
    os.kill(worker, signal.SIGKILL)
    os.waitpid(worker, 0)
"""


def test_a_worker_killed_while_the_sandbox_starts_leaves_nothing(
    workspace: Path, marker: Marker
) -> None:
    argv = [sys.executable, "-W", "ignore", "-c", _KILLED_WORKERS]
    subprocess.run([*argv, str(workspace), marker.value, "100"], check=True)
    marker.wait_for(there=False, seconds=2)
    orphan.sweep()
    _wait_until_nothing_names(workspace)


def _wait_until_nothing_names(workspace: Path) -> None:
    """No process is left whose command line has this workspace, whatever it had come to."""
    until = time.monotonic() + 2
    while left := [
        path.parent.name
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if str(workspace).encode() in _bytes(path)
    ]:
        assert time.monotonic() < until, left
        time.sleep(0.02)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_a_stopped_worker_does_not_keep_a_command_beyond_its_time(
    workspace: Path, marker: Marker
) -> None:
    worker = start_worker(workspace, marker, 2)
    try:
        marker.wait_for(there=True, seconds=20)
        os.kill(worker.pid, signal.SIGSTOP)
        marker.wait_for(there=False, seconds=5)
    finally:
        os.kill(worker.pid, signal.SIGCONT)
        worker.kill()
        worker.wait()


def test_the_call_may_come_from_a_thread(workspace: Path, marker: Marker) -> None:
    found: list[Completed] = []
    thread = threading.Thread(
        target=lambda: found.append(run(workspace, ["sh", "-c", "sleep 0.3; echo done"], marker))
    )
    thread.start()
    thread.join(5)
    assert found[0].output == "done\n"


def test_many_commands_at_once_each_end_by_themselves(workspace: Path, marker: Marker) -> None:
    with ThreadPoolExecutor(8) as pool:
        ended = list(
            pool.map(lambda i: run(workspace, ["sh", "-c", f"echo {i}"], marker, 20), range(80))
        )
    assert [done.output for done in ended] == [f"{i}\n" for i in range(80)]
    assert {done.status for done in ended} == {"exited"}

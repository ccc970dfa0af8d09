"""One sandboxed command from start to end: started behind a gate, watched, and killed as a whole.

The command cannot outlive its call. bubblewrap's first process holds the pid namespace: when it
dies the kernel kills everything in it, and it dies with bubblewrap, which dies with the thread that
started it. So the thread that calls `run` stays until the end. `timeout` inside ends the command
even while this process is stopped.
"""

from __future__ import annotations

import functools
import json
import math
import os
import platform
import re
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from runtime_core.errors import SandboxUnavailable, ToolFailed, WorkspaceError
from runtime_core.limits import limits as runtime_limits
from runtime_core.tools.sandbox import bubblewrap, orphan, process_bound
from runtime_core.tools.sandbox.output import Output
from runtime_core.tools.sandbox.tree import usage

_MB = 1_000_000
_ARGV_BYTES = 120_000
_TICK_SECONDS = 0.05
_USAGE_SECONDS = 0.2
_START_SECONDS = 10.0
_TERM_TO_KILL_SECONDS = 1
_LATE_SECONDS = 1.5  # beyond the time limit, when the `timeout` inside should have ended it
_DRAIN_SECONDS = 1.0
_OWN_PROCESSES = 4  # of bubblewrap, the gate and `timeout`
_NEWS_SECONDS = 0.25
_NEWS_MOST = 100
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# Says that it is there and waits for the word to go: before, bubblewrap may not yet die with its
# parent. A worker that dies without having given the word closes the socket, and `read` fails.
_GATE = """\
echo ready >&0
IFS= read -r go || exit 125
ulimit -c 0; ulimit -f {file_blocks}; ulimit -v {address_kib}; ulimit -n {open_files}
{processes}
exec timeout -k {kill} {seconds} "$@" </dev/null
"""


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """What one command may use."""

    memory_bytes: int = 1_000 * _MB
    """Resident memory of all its processes together."""
    address_bytes: int = 8_000 * _MB
    """Address space of each process."""
    processes: int = 256
    open_files: int = 1_024
    file_bytes: int = 200 * _MB
    tmp_bytes: int = 200 * _MB
    spare_disk_bytes: int = 500 * _MB
    """What a command must leave free on the workspace's disk, where the database may live too."""
    output_bytes: int = 64 * _MB
    """Output after which it is killed; what is kept of it is `limits().tool_result_bytes`."""


@dataclass(frozen=True, slots=True)
class Completed:
    """How a command ended. `exit_code` counts only for `exited`; 128 + n means killed by signal n.

    `status`: exited, timed_out, cancelled, output_limit, memory_limit, process_limit, disk_limit.
    `duration` in seconds.
    """

    status: str
    exit_code: int | None
    output: str
    dropped_bytes: int
    binary: bool
    duration: float


class Sandbox:
    """Runs commands with bubblewrap."""

    def __init__(self, limits: SandboxLimits | None = None) -> None:
        self.limits = limits or SandboxLimits()

    def run(
        self,
        argv: Sequence[str],
        *,
        workspace: Path,
        timeout: float,
        stop: threading.Event,
        on_output: Callable[[str], None] | None = None,
        env: Mapping[str, str] | None = None,
        files: Mapping[str, bytes] | None = None,
        repository_writable: bool = False,
    ) -> Completed:
        """Run `argv` (no shell) in `workspace` until it exits, `timeout` seconds pass or `stop` is
        set.

        When it returns or raises, nothing of the command is left. `files` are put at the given
        paths inside, read-only. `on_output` gets at most a hundred pieces of what is printed.
        Raises SandboxUnavailable, WorkspaceError, or ToolFailed for an argv or environment that
        cannot be run.
        """
        _check(argv, env or {}, workspace)
        program = bubblewrap.check()
        _sweep_once()
        with ExitStack() as opened:
            data = {**bubblewrap.etc_files(), **(files or {})}
            data_fds = {path: _memory_file(opened, content) for path, content in data.items()}
            options = bubblewrap.arguments(
                workspace.resolve(),
                env={**bubblewrap.default_env(), **(env or {})},
                data_fds=data_fds,
                tmp_bytes=self.limits.tmp_bytes,
                repository_writable=repository_writable,
            )
            gate = ["/bin/sh", "-c", self._gate(timeout), "sh", *argv]
            process = _Process(
                [str(program), *options, *gate], tuple(data_fds.values()), workspace, self.limits
            )
            return process.run(timeout, stop, on_output)

    def _gate(self, timeout: float) -> str:
        bounds = self.limits
        return _GATE.format(
            file_blocks=bounds.file_bytes // 512,
            address_kib=bounds.address_bytes // 1024,
            open_files=bounds.open_files,
            processes=_process_limit(bounds.processes),
            kill=_TERM_TO_KILL_SECONDS,
            seconds=max(math.ceil(timeout), 1),
        )


class _Process:
    def __init__(
        self, command: list[str], fds: tuple[int, ...], workspace: Path, bounds: SandboxLimits
    ) -> None:
        self._command, self._fds = command, fds
        self._workspace, self._bounds = workspace, bounds

    def run(
        self, timeout: float, stop: threading.Event, on_output: Callable[[str], None] | None
    ) -> Completed:
        started = time.monotonic()
        status_read, status_write = os.pipe()
        gate, inner_gate = socket.socketpair()
        with gate, ExitStack() as opened:
            opened.callback(os.close, status_read)
            try:
                most = self._bounds.processes + _OWN_PROCESSES
                enter = opened.enter_context(process_bound.bounded(most))
                child = self._spawn(enter, status_write, inner_gate)
            finally:
                os.close(status_write)
                inner_gate.close()
            assert child.stdout is not None  # noqa: S101  for the type checker
            output = Output(
                os.dup(child.stdout.fileno()),
                runtime_limits().tool_result_bytes,
                self._bounds.output_bytes,
            )
            child.stdout.close()
            output.start()
            first = None
            try:
                first = _first_process(status_read)
                if first is not None and _ready(gate) and not stop.is_set():
                    _give_word(gate)
                ended_by = self._watch(child, first, output, started + timeout, stop, on_output)
            finally:
                _kill(child, first)
                output.finish(_DRAIN_SECONDS)
            if not _command_ran(status_read, ended_by):
                raise SandboxUnavailable(
                    f"The sandbox did not start: {output.text().strip()[-300:]}"
                )
        duration = time.monotonic() - started
        if ended_by == "exited" and output.over.is_set():
            ended_by = "output_limit"
        if ended_by == "exited" and duration >= timeout:
            ended_by = "timed_out"  # by the `timeout` inside
        exit_code = child.returncode if ended_by == "exited" else None
        return Completed(
            ended_by, exit_code, output.text(), output.dropped, output.binary, duration
        )

    def _spawn(
        self, enter: Sequence[str], status_fd: int, gate: socket.socket
    ) -> subprocess.Popen[bytes]:
        program, *options = self._command
        command = [*enter, program, "--json-status-fd", str(status_fd), *options]
        try:
            return subprocess.Popen(  # noqa: S603  an argv list; no shell of ours reads it
                command,
                stdin=gate.fileno(),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(status_fd, *self._fds),
                # The first process keeps this environment in its /proc, where the command can read
                # it.
                env={},
                # A Ctrl-C on the terminal is the worker's to handle.
                start_new_session=True,
                bufsize=0,
            )
        except OSError as error:
            raise ToolFailed(f"the command cannot be started: {error.strerror or error}") from error

    def _watch(
        self,
        child: subprocess.Popen[bytes],
        first: int | None,
        output: Output,
        deadline: float,
        stop: threading.Event,
        on_output: Callable[[str], None] | None,
    ) -> str:
        news = _News(on_output, output)
        next_usage = 0.0
        with _exit_poll(child) as poll:
            while not poll.poll(_TICK_SECONDS * 1000):
                now = time.monotonic()
                if stop.is_set():
                    return "cancelled"
                if now >= deadline + _LATE_SECONDS:
                    return "timed_out"
                if output.over.is_set():
                    return "output_limit"
                if first is not None and now >= next_usage:
                    next_usage = now + _USAGE_SECONDS
                    if over := self._over(first):
                        return over
                news.tell(now)
        return "exited"

    def _over(self, first: int) -> str:
        used = usage(first)
        if used.memory_bytes > self._bounds.memory_bytes:
            return "memory_limit"
        if used.processes > self._bounds.processes + _OWN_PROCESSES:
            return "process_limit"
        disk = os.statvfs(self._workspace)
        is_full = disk.f_bavail * disk.f_frsize < self._bounds.spare_disk_bytes
        return "disk_limit" if is_full else ""


class _News:
    """Passes on what was printed, seldom enough that a flood makes no flood of events."""

    def __init__(self, listener: Callable[[str], None] | None, output: Output) -> None:
        self._listener, self._output = listener, output
        self._left = _NEWS_MOST
        self._next = 0.0

    def tell(self, now: float) -> None:
        if self._listener is None or self._left == 0 or now < self._next:
            return
        text = self._output.take_news()
        if text.strip() and "\0" not in text:
            self._left -= 1
            self._next = now + _NEWS_SECONDS
            self._listener(text)


class _exit_poll:
    """Something to poll that becomes ready when the process exits."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self._fd = os.pidfd_open(child.pid)

    def __enter__(self) -> select.poll:
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        return poll

    def __exit__(self, *exc: object) -> None:
        os.close(self._fd)


@functools.cache
def _sweep_once() -> None:
    """The first command of a worker clears up after the one before it."""
    orphan.sweep()


def _check(argv: Sequence[str], env: Mapping[str, str], workspace: Path) -> None:
    if isinstance(argv, str) or not argv or not all(isinstance(word, str) for word in argv):
        raise ToolFailed("argv must be a list of words, the program first; no shell reads it")
    if not argv[0] or any("\0" in word for word in argv):
        raise ToolFailed("argv: the program must be named, and no word may contain NUL")
    if sum(len(word.encode("utf-8", "replace")) + 1 for word in argv) > _ARGV_BYTES:
        raise ToolFailed(f"argv is longer than {_ARGV_BYTES} bytes; put the text into a file")
    if not all(_ENV_NAME.fullmatch(name) and "\0" not in value for name, value in env.items()):
        raise ToolFailed("the environment has a name or value that cannot be used")
    if not workspace.is_dir():
        raise WorkspaceError("The run's workspace is gone; start a new run.")


def _memory_file(opened: ExitStack, content: bytes) -> int:
    fd = os.memfd_create("sandbox-file")
    opened.callback(os.close, fd)
    with os.fdopen(os.dup(fd), "wb") as file:
        file.write(content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _process_limit(most: int) -> str:
    """Counted for each user namespace since Linux 5.14; before, it would count all of the user's
    processes.
    """
    numbers = re.match(r"(\d+)\.(\d+)", platform.release())
    if numbers is None or (int(numbers[1]), int(numbers[2])) < (5, 14):
        return ""
    return f"ulimit -u {most} 2>/dev/null || ulimit -p {most} 2>/dev/null"


def _first_process(status_fd: int) -> int | None:
    """The pid of the namespace's first process, or None if bubblewrap ended before it had one."""
    poll = select.poll()
    poll.register(status_fd, select.POLLIN | select.POLLHUP)
    until = time.monotonic() + _START_SECONDS
    told = b""
    while b"\n" not in told and poll.poll(max(until - time.monotonic(), 0) * 1000):
        piece = os.read(status_fd, 4_096)
        if not piece:
            break
        told += piece
    with suppress(ValueError, KeyError, TypeError):
        return int(json.loads(told.partition(b"\n")[0])["child-pid"])
    return None


def _ready(gate: socket.socket) -> bool:
    """Wait until the gate inside is reached: from there on everything dies with this thread."""
    gate.settimeout(_START_SECONDS)
    with suppress(OSError):
        return gate.recv(16) != b""
    return False


def _give_word(gate: socket.socket) -> None:
    with suppress(OSError):
        gate.sendall(b"go\n")


def _kill(child: subprocess.Popen[bytes], first: int | None) -> None:
    """Kill the whole namespace and wait until the kernel has let go of it."""
    if first is not None and child.poll() is None:
        # While its parent has not been waited for, the number cannot belong to another process.
        with suppress(ProcessLookupError):
            os.kill(first, signal.SIGKILL)
        # bubblewrap then ends by itself and takes the dead first process off the process table.
        with suppress(subprocess.TimeoutExpired):
            child.wait(_DRAIN_SECONDS)
    if child.poll() is None:
        child.kill()
    child.wait()
    _wait_until_gone(first)


def _wait_until_gone(first: int | None) -> None:
    """The first process is dead only after everything else in its namespace is."""
    until = time.monotonic() + _DRAIN_SECONDS
    while first is not None and _alive(first) and time.monotonic() < until:
        time.sleep(0.002)


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def _command_ran(status_fd: int, ended_by: str) -> bool:
    """bubblewrap tells an exit code only for a command that it could start."""
    if ended_by != "exited":
        return True
    os.set_blocking(status_fd, False)
    with suppress(BlockingIOError):
        return b"exit-code" in os.read(status_fd, 4_096)
    return False

"""What a tool function is handed besides its arguments, and the few words it answers with."""

from __future__ import annotations

import datetime as dt
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from runtime_core import clock, ports
from runtime_core.errors import WorkspaceError
from runtime_core.sanitize import clip, storable_text
from runtime_core.tools.sandbox import Completed, Sandbox

MESSAGE_BYTES = 4_000


class Stopped(Exception):
    """The tool ended early because it was asked to stop, and left nothing running."""


@dataclass(frozen=True, slots=True)
class Happened:
    """What a `reconcile` function returns when the effect did happen, with the tool's result."""

    result: Any


DID_NOT_HAPPEN: Final = None
"""What a `reconcile` function returns when the effect surely did not happen."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command that a tool ran in the sandbox, and how it ended."""

    argv: Sequence[str]
    started_at: dt.datetime
    status: str
    exit_code: int | None


def _tell_nobody(message: str, fraction: float | None) -> None:
    """Take progress where nobody listens."""


def _tell_no_trace(command: Command) -> None:
    """Take a command where no trace is kept."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """One call of one tool: for whom, within what time, and with what to stop, tell and run
    commands.

    `idempotency_key` is the same over every retry and recovery of this call. `deadline` is in
    seconds of `time.monotonic`. `stopping` is set when the call is cancelled or out of time: a tool
    that loops or waits looks at it, or calls `check()`.
    """

    run_id: uuid.UUID
    project_id: uuid.UUID
    call_id: str
    idempotency_key: str
    requested_by: int | None
    deadline: float
    stopping: threading.Event = field(default_factory=threading.Event)
    workspace_path: Path | None = None
    undoes_key: str = ""
    """In a `compensate` function: the `idempotency_key` of the call that it takes back."""
    on_progress: Callable[[str, float | None], None] = _tell_nobody
    on_command: Callable[[Command], None] = _tell_no_trace

    @property
    def workspace(self) -> Path:
        """The run's own folder. WorkspaceError if its agent has none or it is gone."""
        if self.workspace_path is None:
            raise WorkspaceError("This agent has no workspace; name one in its definition.")
        if not self.workspace_path.is_dir():
            raise WorkspaceError("The run's workspace is gone; start a new run.")
        return self.workspace_path

    @property
    def remaining(self) -> float:
        """Seconds left until the deadline, never below zero."""
        return max(0.0, self.deadline - time.monotonic())

    def check(self) -> None:
        """Raise Stopped if this call was asked to stop."""
        if self.stopping.is_set():
            raise Stopped("stopped on request")

    def progress(self, message: str, fraction: float | None = None) -> None:
        """Tell who watches the run how far this is; `fraction` from 0 to 1."""
        text, _ = clip(storable_text(message), MESSAGE_BYTES)
        self.on_progress(text, None if fraction is None else min(max(fraction, 0.0), 1.0))

    def run_command(
        self,
        argv: Sequence[str],
        *,
        timeout: float | None = None,
        env: Mapping[str, str] | None = None,
        files: Mapping[str, bytes] | None = None,
        repository_writable: bool = False,
        report: bool = True,
    ) -> Completed:
        """Run `argv` in the sandbox on the workspace; its output is reported as progress while it
        runs.

        Raises Stopped if it was cancelled (nothing of it is left), SandboxUnavailable where none
        can run.
        """
        started_at = clock.now()
        completed = Sandbox().run(
            argv,
            workspace=self.workspace,
            timeout=min(timeout or self.remaining, self.remaining),
            stop=self.stopping,
            on_output=self._report() if report else None,
            env=env,
            files=files,
            repository_writable=repository_writable,
        )
        self.on_command(Command(argv, started_at, completed.status, completed.exit_code))
        if completed.status == "cancelled":
            raise Stopped("the command was stopped on request")
        return completed

    def _report(self) -> Callable[[str], None]:
        """Tells a command's output as it comes. What may be half a secret waits for its other half;
        the last of it is in the result alone.
        """
        shown = ports.redactor().stream()

        def tell(piece: str) -> None:
            text = shown.feed(storable_text(piece))
            if text:
                self.progress(text)

        return tell

"""A workspace, a context on it, and a look at which processes of a call are left."""

from __future__ import annotations

import dataclasses
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runtime_core.tools import ToolContext, repository


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A small git repository."""
    folder = tmp_path / "workspace"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "a.py").write_text("one\ntwo\nthree\n")
    (folder / "notes.txt").write_text("hello\n")
    repository.start(folder)
    return folder


@pytest.fixture
def make_ctx(workspace: Path) -> Callable[..., ToolContext]:
    """Contexts of one call on the workspace; keywords replace its fields."""

    def make(**changes: Any) -> ToolContext:
        ctx = ToolContext(
            run_id=uuid.UUID(int=1),
            project_id=uuid.UUID(int=2),
            call_id="call-1",
            idempotency_key="key-1",
            requested_by=1,
            deadline=time.monotonic() + 30,
            stopping=threading.Event(),
            workspace_path=workspace,
        )
        return dataclasses.replace(ctx, **changes)

    return make


@pytest.fixture
def ctx(make_ctx: Callable[..., ToolContext]) -> ToolContext:
    """One context."""
    return make_ctx()


class Marker:
    """An environment variable by which every process of a command can be found."""

    def __init__(self) -> None:
        self.value = f"marker-{uuid.uuid1().hex}"
        self.env = {"INTERLOCK_MARKER": self.value}

    def processes(self) -> list[str]:
        """The command lines of the living processes that carry the marker."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if self.value.encode() in (folder / "environ").read_bytes():
                    found.append((folder / "cmdline").read_bytes().decode("utf-8", "replace"))
            except OSError:
                continue
        return found

    def wait_for(self, there: bool, seconds: float = 5.0) -> None:
        """Wait until processes with the marker are there, or all gone."""
        until = time.monotonic() + seconds
        while bool(self.processes()) is not there:
            assert time.monotonic() < until, self.processes() or "no process came"
            time.sleep(0.02)


@pytest.fixture
def marker() -> Marker:
    """A new marker."""
    return Marker()

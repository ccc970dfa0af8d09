"""A process that has loaded everything and forks a worker for each line it reads: real kills at 50 ms each.

A line is `{"run": id, "at": n, "action": "kill"}`; the answer `{"signal": n, "points": [names]}` once the child has
ended, or `{"stopped": pid}` as soon as it has stopped itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
import uuid
from pathlib import Path
from typing import Any


class Zygote:
    """The test's side: one child process that forks workers on request."""

    def __init__(self, env: dict[str, str]) -> None:
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "tests.runtime.zygote"],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def drive(self, run_id: uuid.UUID, at: int = -1, action: str = "kill") -> dict[str, Any]:
        """Drive the run in a fresh process until it lets go or dies at its `at`-th point."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps({"run": str(run_id), "at": at, "action": action}) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def wait(self, pid: int) -> dict[str, Any]:
        """Let a stopped child go on, and wait for its end."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps({"continue": pid}) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()


def main() -> None:
    import django

    django.setup()
    from runtime_core.loop import drive  # noqa: F401  loaded before the forks
    from runtime_core.tools import registry

    registry()
    for line in sys.stdin:
        asked = json.loads(line)
        if "continue" in asked:
            import signal

            os.kill(asked["continue"], signal.SIGCONT)
            print(json.dumps(_ended(asked["continue"])), flush=True)
            continue
        trace = Path(os.environ["INTERLOCK_TEST_DATA_DIR"]) / "points.txt"
        trace.unlink(missing_ok=True)
        pid = os.fork()
        if pid == 0:
            _child(uuid.UUID(asked["run"]), asked["at"], asked["action"], trace)
        print(json.dumps(_ended(pid, trace)), flush=True)


def _ended(pid: int, trace: Path | None = None) -> dict[str, Any]:
    _, status = os.waitpid(pid, os.WUNTRACED)
    points = trace.read_text().split() if trace and trace.exists() else []
    if os.WIFSTOPPED(status):
        return {"stopped": pid, "points": points}
    return {"signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0, "points": points}


def _child(run_id: uuid.UUID, at: int, action: str, trace: Path) -> None:
    from runtime_core import failpoints, ports
    from runtime_core.loop.drive import advance

    class Trace(list[str]):
        def append(self, name: str) -> None:
            with trace.open("a") as file:
                file.write(name + "\n")

    failpoints.arm(at, action, Trace())
    try:
        advance(f"zygote-{os.getpid()}", run_id)
        ports.spans().flush()
    except BaseException:  # noqa: BLE001 - the process ends right here; the test reads why
        traceback.print_exc()
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()

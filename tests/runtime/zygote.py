"""A process that has loaded everything and forks a worker for each line it reads: real kills at 50 ms each.

A line is `{"run": id, "at": n, "action": "kill", …}`; the answer `{"signal": n, "points": [names]}` once the child has
ended, or `{"stopped": pid, …}` as soon as it has stopped itself. `{"race": n, "run": id}` forks n at once.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import traceback
import uuid
from pathlib import Path
from typing import Any

LONG_SECONDS = 3_600
_sleeping: set[int] = set()


class Zygote:
    """The test's side: one child process that forks workers on request."""

    def __init__(self, env: dict[str, str], stderr: int | None = None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.runtime.zygote"],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            # A group of its own: one with a stopped member is hung up when its shell goes.
            start_new_session=True,
        )

    def drive(
        self, run_id: uuid.UUID, at: int = -1, action: str = "kill", **more: Any
    ) -> dict[str, Any]:
        """Drive the run in a fresh process until it lets go or dies at its `at`-th point.

        `only` counts points of that name alone; `limits` replaces bounds of the runtime; `worker` names it;
        `sql` is said to its database session first; `job` is one of `tests.faults.jobs.JOBS`, with its own `args`;
        `mutant` is a defect that the process shall have.
        """
        return self._ask({"run": str(run_id), "at": at, "action": action, **more})

    def wait(self, pid: int, *, long: bool = True) -> dict[str, Any]:
        """Let a stopped child go on and wait for its end; after a `long` sleep by its own clock, or a nap."""
        return self._ask({"continue": pid, "long": long})

    def race(self, run_id: uuid.UUID, children: int) -> dict[str, Any]:
        """Drive the run in so many processes, all let loose at once; `{"claimed": how many got it}`."""
        return self._ask({"run": str(run_id), "race": children})

    def sweep(self) -> None:
        """Kill whatever a test left asleep."""
        self._ask({"sweep": True})

    def close(self) -> None:
        """End it."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()

    def _ask(self, line: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(line) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


def main() -> None:
    """Read lines until the test closes our input."""
    import django

    django.setup()
    _warm_up()
    for line in sys.stdin:
        print(json.dumps(_answer(json.loads(line))), flush=True)


def _warm_up() -> None:
    """Load and build what every fork would have to, without a thread or a connection."""
    import genai_prices.data

    from runtime_core import ports
    from runtime_core.gateway import messages as wire
    from runtime_core.loop import drive, restore
    from runtime_core.models import Run
    from runtime_core.tools import registry

    assert genai_prices.data and drive and restore
    registry()
    wire.load(json.loads(json.dumps(wire.dump(wire.user_request("warm")))))
    ports.redactor().redact({"warm": ["up", 1]})
    ports.redactor().stream().end()
    assert ports.audit() and ports.spans() and ports.decision_guard()
    str(Run.objects.select_related("agent", "agent_version", "thread").query)


def _answer(asked: dict[str, Any]) -> dict[str, Any]:
    if "sweep" in asked:
        return _sweep()
    if "continue" in asked:
        _sleeping.discard(asked["continue"])
        if asked["long"]:
            _woken(asked["continue"]).touch()
        os.kill(asked["continue"], signal.SIGCONT)
        return _ended(asked["continue"])
    if "race" in asked:
        return _race(uuid.UUID(asked["run"]), asked["race"])
    trace = Path(os.environ["INTERLOCK_TEST_DATA_DIR"]) / "points.txt"
    trace.unlink(missing_ok=True)
    pid = os.fork()
    if pid == 0:
        _child(asked, trace)
    return _ended(pid, trace)


def _woken(pid: int) -> Path:
    """The file by whose presence a child knows that it slept for long."""
    return Path(os.environ["INTERLOCK_TEST_DATA_DIR"]) / f"woken-{pid}"


def _sweep() -> dict[str, Any]:
    for pid in _sleeping:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    swept = len(_sleeping)
    _sleeping.clear()
    return {"swept": swept}


def _ended(pid: int, trace: Path | None = None) -> dict[str, Any]:
    _, status = os.waitpid(pid, os.WUNTRACED)
    points = trace.read_text().split() if trace and trace.exists() else []
    if os.WIFSTOPPED(status):
        _sleeping.add(pid)
        return {"stopped": pid, "signal": 0, "points": points}
    died = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 0
    return {"signal": died, "code": code, "points": points}


def _race(run_id: uuid.UUID, children: int) -> dict[str, Any]:
    ready, shot = os.pipe()
    pids = []
    for _ in range(children):
        pid = os.fork()
        if pid == 0:
            os.close(shot)
            os.read(ready, 1)  # ends when the last writing end is closed
            _race_child(run_id)
        pids.append(pid)
    os.close(ready)
    os.close(shot)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    return {"claimed": codes.count(7), "refused": codes.count(0)}


def _race_child(run_id: uuid.UUID) -> None:
    from runtime_core.loop.drive import advance

    code = 1
    try:
        code = 7 if advance(f"racer-{os.getpid()}", run_id) else 0
    except BaseException:  # noqa: BLE001 - the process ends right here
        traceback.print_exc()
    finally:
        os._exit(code)


def _child(asked: dict[str, Any], trace: Path) -> None:
    from django.conf import settings
    from django.db import connection

    from runtime_core import clock, failpoints, ports
    from runtime_core.limits import limits
    from tests.faults import mutants
    from tests.faults.jobs import JOBS

    woken = _woken(os.getpid())
    woken.unlink(missing_ok=True)
    clock.monotonic = lambda: time.monotonic() + (LONG_SECONDS if woken.exists() else 0)
    settings.INTERLOCK_LIMITS = asked.get("limits", {})
    limits.cache_clear()
    stop = failpoints.ACTIONS["stop"]
    # Or it might sleep with a trace's rows locked, which has a test of its own.
    failpoints.ACTIONS["stop"] = lambda name: (ports.spans().flush(), stop(name))[1]
    code = 0
    try:
        mutants.apply(asked.get("mutant", ""))
        if "sql" in asked:
            with connection.cursor() as cursor:
                cursor.execute(asked["sql"])
        failpoints.arm(asked["at"], asked["action"], _Trace(trace), asked.get("only", ""))
        job = JOBS[asked.get("job", "advance")]
        worker = asked.get("worker", f"zygote-{os.getpid()}")
        job(worker, uuid.UUID(asked["run"]), **asked.get("args", {}))
        failpoints.disarm()
        ports.spans().flush()
    except BaseException:  # noqa: BLE001 - the process ends right here; the test reads why
        traceback.print_exc()
        code = 3
    finally:
        os._exit(code)


class _Trace(list[str]):
    """The names of points, in a file that outlives the process."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)

    def append(self, name: str) -> None:
        self._file.write(f"{name}\n".encode())


if __name__ == "__main__":
    main()

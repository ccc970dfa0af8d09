"""`python -m benchmarks.lanes`: one more worker process for `steps`.

It says `ready`, reads lines of run ids, a line a thread, until an empty one, and says `done` when all are driven.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from uuid import UUID


class Lanes:
    """The other side: a process that drives runs when it is told to."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.lanes"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._hear("ready")

    def drive(self, lanes: Sequence[Sequence[UUID]]) -> None:
        """Begin to drive these runs, each lane on a thread of its own."""
        assert self._process.stdin
        for lane in lanes:
            self._process.stdin.write(" ".join(str(run_id) for run_id in lane) + "\n")
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def wait(self) -> None:
        """Return when all are driven."""
        self._hear("done")

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(20)

    def _hear(self, word: str) -> None:
        assert self._process.stdout
        said = self._process.stdout.readline().strip()
        assert said == word, f"{said!r} instead of {word!r}"


@contextmanager
def processes(count: int) -> Iterator[list[Lanes]]:
    """So many of them."""
    started = [Lanes() for _ in range(count)]
    try:
        yield started
    finally:
        for one in started:
            one.close()


def drive(lane: Sequence[UUID]) -> None:
    """Claim and drive each of these runs to its end, on this thread."""
    from runtime_core.loop.drive import advance

    for run_id in lane:
        assert advance("bench", run_id), "somebody else has taken the run"


_threads: list[ThreadPoolExecutor] = []


def together(lanes: Sequence[Sequence[UUID]]) -> None:
    """Drive all lanes at once, each on a thread of its own; they stay with their connections, as a worker's do."""
    while len(_threads) < len(lanes):
        _threads.append(ThreadPoolExecutor(1, thread_name_prefix="lane"))
    driven = [thread.submit(drive, lane) for thread, lane in zip(_threads, lanes, strict=False)]
    for one in driven:
        one.result()


def main() -> None:
    """Serve until our input ends."""
    import django

    django.setup()
    from runtime_core import ports
    from runtime_core.tools import registry

    registry()
    ports.redactor().redact({"warm": "up"})
    print("ready", flush=True)
    lanes: list[list[UUID]] = []
    for line in sys.stdin:
        if line.strip():
            lanes.append([UUID(word) for word in line.split()])
            continue
        together(lanes)
        lanes = []
        print("done", flush=True)
    ports.spans().flush()


if __name__ == "__main__":
    main()

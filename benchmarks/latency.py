"""How long people wait for a real worker: after a decision, and after a cancel."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.place import Place, actor, status_of, wait_until
from benchmarks.table import Figure

ASKS = [
    {"text": "May I?", "calls": [{"tool": "do_if_agreed", "args": {"number": 1}}]},
    {"text": "It is done."},
]
PATIENCE_S = 30.0


def resume(place: Place, times: int) -> Iterator[Figure]:
    """From the commit of a decision to what a worker then does."""
    place.start_parts()
    agent = place.agent("asks", ASKS)
    with commits() as committed:
        found = [decide_once(place, agent, committed) for _ in range(times + 3)][3:]
    claimed, acting = zip(*found, strict=True)
    yield Figure.latency("decision committed → first event of the resumed run", claimed, "")
    yield Figure.latency(
        "8: decision committed → the code after it runs", acting, "4 / 10 (goal 2 / 6)"
    )


def queue(place: Place, times: int) -> Iterator[Figure]:
    """From the commit that queues a run to the first line of its first step, in another process."""
    place.start_parts()
    agent = place.agent("stamp", [{"text": "unused"}], engine="graph", graph="stamp")
    with commits() as committed:
        found = [_start_once(place, agent, committed) for _ in range(times + 3)][3:]
    yield Figure.latency(
        "12: run queued → its first step runs in a worker", found, "5 / 15 (goal 2 / 6)"
    )


@contextmanager
def commits() -> Iterator[list[float]]:
    """When each run was made due by this process: its hint is the first thing after the commit."""
    from runtime_core.scheduling import wake

    committed: list[float] = []
    real = wake.send

    def noted(run_id: Any) -> bool:
        committed.append(time.time())
        return real(run_id)

    wake.send = noted
    try:
        yield committed
    finally:
        wake.send = real


def _start_once(place: Place, agent: str, committed: list[float]) -> float:
    from runtime_core.models import Run

    run = place.start(agent)
    began = committed[-1]
    wait_until(lambda: status_of(run.id) == "completed", PATIENCE_S, "the run ends")
    return float(Run.objects.get(id=run.id).output) - began


def cancel(place: Place, times: int) -> Iterator[Figure]:
    """From the command to the moment when no process of the sandbox is in /proc any more."""
    place.start_parts()
    found = [_cancel_once(place, number) for number in range(times)]
    yield Figure.latency("cancel → sandboxed processes gone", found, "2,000")


def interrupted(place: Place, agent: str, run: Any = None) -> tuple[Any, Any]:
    """A run of that agent that waits for a person (a new one, if none is given), and what it asks."""
    from runtime_core.models import Interrupt

    run = run or place.start(agent)
    open_ones = Interrupt.objects.filter(run_id=run.id, status="open")
    return run, wait_until(open_ones.first, PATIENCE_S, "the run asks")


def decide_once(
    place: Place, agent: str, committed: list[float], run: Any = None
) -> tuple[float, float]:
    from approvals.deciding.commands import Opinion, decide
    from runtime_core.models import Event

    run, interrupt = interrupted(place, agent, run)
    wait_until(lambda: status_of(run.id) == "interrupted", PATIENCE_S, "it waits")
    opinion = Opinion("approve", interrupt.version, interrupt.digest)
    decide(actor(place.approver), interrupt.id, opinion)
    decided = committed[-1]
    wait_until(lambda: status_of(run.id) == "completed", PATIENCE_S, "the run ends")
    told = Event.objects.filter(run_id=run.id).order_by("-seq")
    claimed = next(e.ts for e in told if e.data.get("cause") == "claim").timestamp()
    acted = next(e.data["result"] for e in told if e.type == "tool_call_result")
    return claimed - decided, float(acted) - decided


def _cancel_once(place: Place, number: int) -> float:
    from runtime_core import commands

    seconds = f"{3600 + os.getpid() % 1000}.{number}"
    sleep = {"argv": ["sleep", seconds], "timeout_s": 300}
    agent = place.agent(
        "sleeps",
        [{"text": "Sleeping.", "calls": [{"tool": "run_command", "args": sleep}]}, {"text": "Up."}],
        workspace="evals/fixtures/slugify",
    )
    run = place.start(agent)
    # The sandbox's own processes have the command in their command lines too.
    wait_until(lambda: _processes(seconds), PATIENCE_S, "the command runs")
    time.sleep(0.2)  # all of them have started
    pids = _processes(seconds)
    began = time.monotonic()
    commands.cancel_run(actor(place.operator), run)
    wait_until(lambda: not any(_lives(pid) for pid in pids), PATIENCE_S, "they end", every=0.0005)
    took = time.monotonic() - began
    assert not _processes(seconds), "something of the sandbox is left"
    wait_until(lambda: status_of(run.id) == "cancelled", PATIENCE_S, "the run is cancelled")
    return took


def _processes(word: str) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if word.encode() in (folder / "cmdline").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in ("Z", "X")

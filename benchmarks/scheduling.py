"""The queue under load: claims under quotas, a killed worker, thousands that wait, a hundred that stream at once."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.latency import ASKS, PATIENCE_S, commits, decide_once
from benchmarks.place import Place, actor, status_of, wait_until
from benchmarks.table import Figure

THREADS = 8
SMALL_PROJECTS = 49
HOT_LIMIT, SMALL_LIMIT, ALL_LIMIT = 8, 4, 24
STREAM_TEXT = "quiet amber river stone winter field copper glass " * 60


def claims(place: Place, backlog: int, seconds: float) -> Iterator[Figure]:
    """Eight threads claim and finish runs under quotas of all, of each project and of each agent."""
    hot, small = _crowd(place, backlog)
    stop, over, samples = threading.Event(), [], itertools.count()
    limits = {hot: HOT_LIMIT} | dict.fromkeys(small, SMALL_LIMIT)
    watcher = threading.Thread(target=_watch, args=(stop, limits, over, samples))
    done: list[tuple[Any, float]] = []
    watcher.start()
    cpu, began = time.process_time(), time.monotonic()
    threads = [threading.Thread(target=_work, args=(began + seconds, done)) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took, cpu = time.monotonic() - began, time.process_time() - cpu
    stop.set()
    watcher.join()
    served = Counter(project for project, _ in done)
    first = {project: at - began for project, at in reversed(done)}
    waited = [first[project] for project in small if project in first]
    name = f"claims/s under quotas, {THREADS} threads, {backlog:,} runs of one project queued"
    rate = f"{len(done) / took:,.0f}/s, {len(over)} of {next(samples)} samples over a limit"
    yield Figure(name, rate, goal="800/s, none over")
    yield Figure("CPU of the worker per claim and end", f"{cpu / max(len(done), 1) * 1e3:.2f} ms")
    yield Figure.latency("first claim of each of 49 small projects beside it", waited, "all served")
    assert len(waited) == SMALL_PROJECTS, (
        f"{len(waited)} of the small projects were served: {served}"
    )
    _clear()


def crowd(place: Place, kills: int, waiting: int, streams: int) -> Iterator[Figure]:
    """What one worker bears, and what its death costs."""
    place.start_parts()
    for part in place.stack.parts:
        if part.name == "worker":
            part.signal_group(signal.SIGTERM)
    with _worker(place, streams + 10) as worker:
        yield from _streaming(place, worker, streams)
        yield from _waiting(place, worker, waiting)
        yield from _killed(place, kills)


def _streaming(place: Place, worker: subprocess.Popen[bytes], streams: int) -> Iterator[Figure]:
    agent = place.agent("streams", [{"text": STREAM_TEXT}], chunk_ms=50)
    before = _memory_mb(worker.pid)
    runs = [place.start(agent) for _ in range(streams)]
    most, at_once = before, 0
    while not all(status_of(run.id) == "completed" for run in (runs[0], runs[-1])):
        most, at_once = max(most, _memory_mb(worker.pid)), max(at_once, _running())
        time.sleep(0.2)
    wait_until(lambda: not _running(), PATIENCE_S, "all have ended")
    gaps = _gaps([run.id for run in runs])
    name = f"{streams} runs streaming in one worker ({at_once} at once): between two pieces of text"
    yield Figure.latency(name, gaps, "p95 500")
    p95 = sorted(gaps)[int(len(gaps) * 0.95)] * 1e3
    memory = f"{most - before:.0f} MB more than idle ({before:.0f} MB)"
    yield Figure(
        "the same, p95, and memory of the worker", f"{p95:.0f} ms; {memory}", goal="500 ms"
    )


def _waiting(place: Place, worker: subprocess.Popen[bytes], waiting: int) -> Iterator[Figure]:
    from runtime_core.models import ProjectQueue

    ProjectQueue.objects.update_or_create(project=place.project, defaults={"most": 10_000})
    agent = place.agent("asks", ASKS)
    with commits() as committed:
        alone = [decide_once(place, agent, committed)[1] for _ in range(10)]
    before = _held(worker.pid)
    runs = [place.start(agent) for _ in range(waiting)]
    wait_until(lambda: _interrupted() >= waiting, 600, "all wait", every=0.2)
    time.sleep(2)  # what the threads held is given back
    after = _held(worker.pid)
    some = runs[:: max(waiting // 20, 1)][:20]
    with commits() as committed:
        among = [decide_once(place, agent, committed, run)[1] for run in some]
    extra = [now - was for was, now in zip(before, after, strict=True)]
    held = f"{extra[0]:.1f} MB, {extra[1]} threads, {extra[2]} connections more than before"
    yield Figure(f"{waiting:,} runs waiting for people", held, goal="none; < 1 MB each")
    yield Figure.latency("decision → the tool starts, nothing else waiting", alone, "")
    yield Figure.latency(f"decision → the tool starts, {waiting:,} waiting", among, "the same")


def _killed(place: Place, times: int) -> Iterator[Figure]:
    agent = place.agent("slow", [{"text": STREAM_TEXT}], chunk_ms=400)
    moved = [_kill_once(place, agent) for _ in range(times)]
    yield Figure.latency("kill -9 of a worker → another has claimed its run", moved, "3,000")


def _kill_once(place: Place, agent: str) -> float:
    from runtime_core import commands
    from runtime_core.models import RunLease

    with _worker(place, 4) as victim:
        runs: list[Any] = []

        def mine() -> Any:
            runs.append(place.start(agent))
            time.sleep(0.3)
            return RunLease.objects.filter(worker__endswith=f":{victim.pid}").first()

        lease = wait_until(mine, PATIENCE_S, "it takes a run")
        os.kill(victim.pid, signal.SIGKILL)
        began = time.monotonic()
        others = RunLease.objects.filter(run_id=lease.run_id).exclude(worker=lease.worker)
        wait_until(others.exists, 60, "its run moves", every=0.005)
        took = time.monotonic() - began
    for run in runs:
        commands.cancel_run(actor(place.operator), run)
    wait_until(lambda: not _running(), PATIENCE_S, "all have ended")
    return took


@contextmanager
def _worker(place: Place, slots: int) -> Iterator[subprocess.Popen[bytes]]:
    """A worker process of our own with so many slots."""
    from runtime_core.models import Worker

    env = {**os.environ, "INTERLOCK_PART": "worker", "INTERLOCK_WORKER_THREADS": str(slots)}
    log = (place.stack.folder.logs / f"bench-worker-{slots}.log").open("ab")
    command = [sys.executable, "-m", "celery", "-q", "-A", "config", "worker", "--pool", "threads"]
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    process = subprocess.Popen(
        [*command, "-n", f"bench-{time.monotonic_ns()}@%h", *quiet], env=env, stdout=log, stderr=log
    )
    try:
        named = Worker.objects.filter(name__endswith=f":{process.pid}", missing_since=None)
        wait_until(named.exists, 60, "the worker lives")
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
        log.close()


# ── Rows for claims, without conversations ──────────────────────────────────────────────────────


def _crowd(place: Place, backlog: int) -> tuple[Any, list[Any]]:
    """One project with a long queue and 49 with short ones, and quotas of every kind; their ids."""
    from runtime_core import commands
    from runtime_core.models import Agent, Project
    from runtime_core.scheduling import queue

    found = []
    for number in range(SMALL_PROJECTS + 1):
        project = Project.objects.create(slug=f"crowd-{number}", name=f"Crowd {number}")
        definition = {"name": "any", "script": "none", "instructions": "-", "tools": []}
        commands.apply_agent(actor(place.operator), project, definition)
        agent = Agent.objects.get(project=project)
        _pile(place, agent, 40 if number else backlog)
        limit = SMALL_LIMIT if number else HOT_LIMIT
        for kind, of in (("project", {"project": project}), ("agent", {"agent": agent})):
            key = str(next(iter(of.values())).pk)
            _limit(kind, key, limit, **of)
        found.append(project.id)
    _limit("all", "", ALL_LIMIT)
    queue.count()
    with place.connect() as connection:
        connection.execute("ANALYZE")
    return found[0], found[1:]


def _limit(kind: str, key: str, at_once: int, **of: Any) -> None:
    from django.db import transaction

    from runtime_core.models import Quota
    from runtime_core.scheduling import quotas

    with transaction.atomic():
        quotas.apply(Quota.objects.create(kind=kind, key=key, at_once=at_once, **of))


def _pile(place: Place, agent: Any, count: int) -> None:
    from runtime_core.models import Run, Thread

    limits = {"max_steps": 9, "max_tokens": 9, "max_cost_microusd": 9, "deadline_s": 3_600}
    of = {"project_id": agent.project_id, "created_by": place.operator}
    for start in range(0, count, 1_000):
        threads = [Thread(**of) for _ in range(min(1_000, count - start))]
        Thread.objects.bulk_create(threads)
        Run.objects.bulk_create(
            Run(
                thread=thread,
                agent=agent,
                agent_version=agent.current,
                title="x",
                input="x",
                **of,
                **limits,
            )
            for thread in threads
        )


def _work(until: float, done: list[tuple[Any, float]]) -> None:
    """Claim, and commit an end, as a worker does with a run that has nothing to do."""
    from django.db import connection

    from runtime_core import transitions
    from runtime_core.states import RunStatus
    from runtime_core.transitions import Seen, StepCommit

    end = StepCommit(to=RunStatus.COMPLETED, cause="finished", output="")
    while time.monotonic() < until:
        claimed = transitions.claim("bench")
        if claimed is None:
            continue
        claim, last_seq = claimed
        with connection.cursor() as cursor:
            cursor.execute("SELECT project_id, version FROM run WHERE id = %s", [claim.run_id])
            project, version = cursor.fetchone()
        done.append((project, time.monotonic()))
        transitions.commit_step(claim, Seen(version, last_seq, False, False), end)
    connection.close()


def _watch(
    stop: threading.Event, limits: dict[Any, int], over: list[Any], samples: Iterator[int]
) -> None:
    from django.db import connection

    while not stop.wait(0.02):
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT project_id, count(*) FROM run WHERE status = 'running' GROUP BY 1"
            )
            running = dict(cursor.fetchall())
        next(samples)
        if sum(running.values()) > ALL_LIMIT or any(n > limits[p] for p, n in running.items()):
            over.append(running)
    connection.close()


def _clear() -> None:
    from django.db import connection

    from runtime_core.models import Quota

    Quota.objects.all().delete()
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE run SET status = 'cancelled', ended_at = clock_timestamp()"
            " WHERE status IN ('pending', 'running')"
        )
        cursor.execute("DELETE FROM run_lease")


# ── What is there now ───────────────────────────────────────────────────────────────────────────


def _running() -> int:
    from runtime_core.models import Run

    return Run.objects.filter(status__in=["running", "pending"]).count()


def _interrupted() -> int:
    from runtime_core.models import Run

    return Run.objects.filter(status="interrupted").count()


def _gaps(run_ids: list[Any]) -> list[float]:
    """Seconds between each two pieces of text that a run told one after the other."""
    from runtime_core.models import Event

    gaps = []
    for run_id in run_ids:
        told = Event.objects.filter(run_id=run_id, type="text_delta").order_by("seq")
        times = list(told.values_list("ts", flat=True))
        gaps += [(b - a).total_seconds() for a, b in itertools.pairwise(times)]
    return gaps


def _held(pid: int) -> tuple[float, int, int]:
    """Megabytes and threads of the worker, and database connections of all workers."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'interlock-worker'"
        )
        connections = int(cursor.fetchone()[0])
    return _memory_mb(pid), len(list(Path(f"/proc/{pid}/task").iterdir())), connections


def _memory_mb(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0]) / 1024

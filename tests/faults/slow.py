"""The slow tier: real workers, a real web process, Valkey and PostgreSQL, harmed on a schedule that a seed fixes.

Two beats tick and people decide all the while. At the end every run has ended right, and nothing is broken.
"""

from __future__ import annotations

import itertools
import random
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpx
import redis
from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connection, connections

from runtime_core import decisions
from runtime_core.errors import InterlockError
from runtime_core.models import ApiToken, Interrupt, Run
from runtime_core.scheduling import reconcile
from tests.faults.invariants import violations
from tests.faults.stage import Stage
from tests.live.web import Web
from tests.runtime.tools import effects
from tests.runtime.workers import Worker
from tests.runtime.world import World, call, decide_on, wait_until

# With leases this short a stopped worker's runs move on while it sleeps.
SHORT = {"lease_seconds": 3, "heartbeat_seconds": 1, "self_fence_seconds": 2}
TURNS = [
    {"text": "First a note. " * 6, "calls": [call("note", text="n {{input}}"), call("look")]},
    {"text": "Then the book. " * 6, "calls": [call("ledger_append", text="pay {{input}}")]},
    {
        "text": "A place, and the charge. " * 6,
        "calls": [call("book", place="at {{input}}"), call("charge", amount=7)],
    },
    {"text": "That is all. " * 6},
]
AT_ONCE = 6
PAUSE_SECONDS = (1.0, 4.0)
END_SECONDS = 120.0


class Play:
    """Everything that runs, and what can be done to it."""

    def __init__(self, stage: Stage, world: World, env: dict[str, str], seed: int) -> None:
        self.stage = stage
        self.world = world
        self.env = env
        self.chosen = random.Random(seed)
        self.agent = world.agent(TURNS, name="slow", chunk_ms=4)
        self.workers = [Worker(env).start() for _ in range(2)]
        self.web = Web(env, subprocess.DEVNULL)
        self.token = ApiToken.issue(world.bob)[1]
        self.runs: list[Run] = []
        self.over = threading.Event()
        self._numbers = itertools.count(1)

    # What harms.

    def kill_a_worker(self) -> None:
        self._replace(self.chosen.randrange(2))

    def stop_a_worker_for_longer_than_its_lease(self) -> None:
        worker = self.workers[self.chosen.randrange(2)]
        worker.signal(signal.SIGSTOP)
        self.over.wait(SHORT["lease_seconds"] + 1.5)
        worker.signal(signal.SIGCONT)

    def kill_the_web(self) -> None:
        self.web.process.kill()
        self.web.process.wait(10)
        self.web = Web(self.env, subprocess.DEVNULL)

    def wipe_valkey(self) -> None:
        with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=5) as client:
            client.flushall()

    def kill_valkey(self) -> None:
        self.stage.valkey.process.kill()
        self.stage.valkey.process.wait(10)
        self.over.wait(1)
        self.stage.valkey.start()

    def stop_postgres_at_once(self) -> None:
        self.stage.postgres.process.send_signal(signal.SIGQUIT)
        self.stage.postgres.process.wait(20)
        self.stage.postgres.start()
        connections.close_all()

    @property
    def harms(self) -> list[Callable[[], None]]:
        """All of it."""
        return [
            self.kill_a_worker,
            self.stop_a_worker_for_longer_than_its_lease,
            self.kill_the_web,
            self.wipe_valkey,
            self.kill_valkey,
            self.stop_postgres_at_once,
        ]

    def _replace(self, number: int) -> None:
        self.workers[number].kill()
        self.workers[number] = Worker(self.env).start()

    # What goes on meanwhile.

    def start_more(self) -> None:
        """Keep some runs going."""
        open_now = [run for run in self.runs if not self._has_ended(run)]
        for _ in range(AT_ONCE - len(open_now)):
            self.runs.append(self.world.run_of(self.agent, input=f"r{next(self._numbers)}"))

    def _has_ended(self, run: Run) -> bool:
        return Run.objects.get(id=run.id).state.ended

    def beat(self) -> None:
        """One of two beats; each of its ticks may meet the other's."""
        while not self.over.wait(0.3):
            with patience():
                reconcile.reconcile()
                decisions.expire_due()
                reconcile.dispatch()
        connection.close()

    def people(self) -> None:
        """Somebody decides whatever is asked: over the web where it is there, else by hand."""
        while not self.over.wait(0.2):
            with patience():
                for interrupt in Interrupt.objects.filter(status="open").select_related(
                    "tool_call", "run"
                ):
                    self._decide(interrupt)
        connection.close()

    def _decide(self, interrupt: Interrupt) -> None:
        if interrupt.kind == "outcome_unknown":
            if booked(interrupt):
                decide_on(interrupt, self.world.bob, "respond", response="It is in the book.")
            else:
                decide_on(interrupt, self.world.bob)
            return
        body = {"action": "approve", "version": interrupt.version, "digest": interrupt.digest}
        # If no answer comes, nobody knows whether it counted: the next look decides alike.
        with suppress(httpx.HTTPError):
            httpx.post(
                f"{self.web.origin}/api/v1/interrupts/{interrupt.id}/decisions",
                json=body,
                headers={"Authorization": f"Bearer {self.token}"},
                timeout=5,
            )

    def end(self) -> None:
        """End what was started, whatever state it is in."""
        self.over.set()
        for worker in self.workers:
            if not worker.ended:
                worker.kill()
            worker.log.close()
        self.web.process.kill()
        self.web.process.wait(10)


@contextmanager
def patience() -> Iterator[None]:
    """The database may be away, and another may have been first."""
    try:
        yield
    except DatabaseError:
        connection.close()
    except InterlockError:
        pass


def survive_crashes() -> None:
    """What tests' databases do without: a commit that was acknowledged is there after a crash of the server."""
    name = connection.settings_dict["NAME"]
    with connection.cursor() as cursor:
        cursor.execute(f'ALTER DATABASE "{name}" SET synchronous_commit = on')
    connections.close_all()


def booked(interrupt: Interrupt) -> bool:
    """True if the effect that nobody knows of stands in the book."""
    key, run = interrupt.tool_call.idempotency_key, interrupt.run
    return any(
        key in line or line in (f"pay {run.input}", f"book:at {run.input}") for line in effects()
    )


def run(stage: Stage, world: World, env: dict[str, str], seed: int, seconds: float) -> int:
    """Harm it for so many seconds, let everything end, and print what was found; how much was wrong."""
    survive_crashes()
    play = Play(stage, world, env, seed)
    helpers = [threading.Thread(target=t) for t in (play.beat, play.beat, play.people)]
    print(
        f"slow tier: two workers, a web process, two beats; {seconds:.0f} s of harm, seed {seed}",
        flush=True,
    )
    began, done = time.monotonic(), Counter[str]()
    try:
        for helper in helpers:
            helper.start()
        _harm(play, seconds, done)
        problems = _see_the_end(play)
    finally:
        play.end()
        for helper in helpers:
            helper.join(20)
    problems += judge(play.runs)
    for name, times in sorted(done.items()):
        print(f"  {times:3} times: {name.replace('_', ' ')}")
    for problem in problems:
        print(f"  FAILED {problem}")
    took = time.monotonic() - began
    print(
        f"slow tier: {len(play.runs)} runs, {sum(done.values())} blows in {took:.0f} s, {len(problems)} failed"
    )
    return len(problems)


def _harm(play: Play, seconds: float, done: Counter[str]) -> None:
    until = time.monotonic() + seconds
    # Every harm comes once, in an order of the seed's, before any comes again.
    rounds = (play.chosen.sample(play.harms, len(play.harms)) for _ in itertools.count())
    for harm in itertools.chain.from_iterable(rounds):
        if time.monotonic() > until:
            return
        with patience():
            play.start_more()
        play.over.wait(play.chosen.uniform(*PAUSE_SECONDS))
        harm()
        done[harm.__name__] += 1


def _see_the_end(play: Play) -> list[str]:
    def all_ended() -> bool:
        with patience():
            return all(play._has_ended(r) for r in play.runs)
        return False

    try:
        wait_until(all_ended, END_SECONDS, "all runs end", every=0.3)
    except AssertionError as error:
        return [str(error)]
    return []


def judge(runs: list[Run]) -> list[str]:
    """What is wrong with these runs and their effects."""
    problems: list[Any] = list(violations([r.id for r in runs]))
    counts = Counter(effects())
    for run in Run.objects.filter(id__in=[r.id for r in runs]):
        if run.status != "completed":
            problems.append(f"run {run.input} is {run.status}: {run.error}")
        keys = dict(run.tool_calls.values_list("tool", "idempotency_key"))
        lines = [
            f"pay {run.input}",
            f"book:at {run.input}",
            f"{keys.get('note')}:n {run.input}",
            f"charge:{keys.get('charge')}:7",
        ]
        problems += [
            f"run {run.input}: {counts[line]} times {line}" for line in lines if counts[line] != 1
        ]
    return problems

"""Any sequence of what can happen to runs, against the real database, with every invariant looked at after each move.

The model is small: who holds what, and which moves the table allows. Where the core answers otherwise, or an invariant
does not hold, hypothesis shrinks the sequence to the few moves that it takes.
"""

from __future__ import annotations

import itertools
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db import connection
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from runtime_core import commands, decisions, failpoints, transitions
from runtime_core.errors import Fenced, InterlockError
from runtime_core.loop import drive, restore
from runtime_core.loop.control import Hold
from runtime_core.loop.outcome import Go, Stop
from runtime_core.loop.work import Work
from runtime_core.models import Interrupt, Run, RunLease
from runtime_core.scheduling import reconcile
from runtime_core.states import RUN_MOVES, RunStatus
from runtime_core.values import Claim
from tests.faults.invariants import violations
from tests.runtime.tools import effects
from tests.runtime.world import World, actor, call, decide_on, fresh

LONG_AGO = "2000-01-01T00:00:00Z"
MOST_RUNS = 3
_PLAIN = [
    {"text": "A note.", "calls": [call("note", text="{{input}}"), call("look")]},
    {"text": "The book.", "calls": [call("ledger_append", text="pay {{input}}")]},
    {"text": "The rest.", "calls": [call("book", place="{{input}}"), call("charge", amount=5)]},
    {"text": "Done."},
]
_PARKING = {"text": "Wait.", "error": {"code": "model_rate_limited", "retry_after": 90}}
_FAILING = {"text": "No.", "error": {"code": "model_rejected"}}
_names = itertools.count(1)


class Crash(BaseException):
    """The process is gone: nothing of it may run any more, so nothing catches this."""


@dataclass(eq=False)
class Worker:
    """One claim as its process sees it; `stale` once the run was given to others."""

    run_id: uuid.UUID
    claim: Claim
    work: Work
    hold: Hold
    stale: bool = False


def machine(world: World) -> type[RuleBasedStateMachine]:
    """The machine over the agents of a world."""
    agents = {
        "plain": world.agent(_PLAIN, name=f"plain-{next(_names)}"),
        "parking": world.agent([_PARKING, *_PLAIN], name=f"parking-{next(_names)}"),
        "failing": world.agent([_FAILING, *_PLAIN[1:]], name=f"failing-{next(_names)}"),
    }
    return type("Runs", (Machine,), {"world": world, "agents": agents})


class Machine(RuleBasedStateMachine):
    """Runs, their workers and their people."""

    world: World
    agents: dict[str, str]

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[Run] = []
        self.workers: list[Worker] = []
        self.said: set[tuple[uuid.UUID, str]] = set()  # the same person may repeat what has counted

    # People and programs.

    @precondition(lambda self: len(self.runs) < MOST_RUNS)
    @rule(kind=st.sampled_from(["plain", "plain", "parking", "failing"]), poor=st.booleans())
    def start(self, kind: str, poor: bool) -> None:
        name = f"run-{next(_names)}"
        limits = {"max_steps": 3} if poor else None
        self.runs.append(self.world.run_of(self.agents[kind], input=name, limits=limits))

    @precondition(lambda self: self.runs)
    @rule(
        pick=st.integers(0, 9),
        name=st.sampled_from(["cancel", "pause", "resume", "retry", "top_up"]),
    )
    def command(self, pick: int, name: str) -> None:
        run = self._run(pick)
        may = {
            "cancel": not run.state.ended,
            "pause": run.status in ("running", "pending", "waiting"),
            "resume": run.status == "paused",
            "top_up": run.status == "paused",
            "retry": run.status in ("failed", "timed_out"),
        }[name]
        act: dict[str, Callable[[], Any]] = {
            "cancel": lambda: commands.cancel_run(self.alice, run),
            "pause": lambda: commands.pause_run(self.alice, run),
            "resume": lambda: commands.resume_run(self.alice, run),
            "top_up": lambda: commands.resume_run(self.alice, run, {"max_steps": 40}),
            "retry": lambda: commands.retry_run(self.alice, run),
        }
        self._expect(may, act[name], f"{name} of a run that is {run.status}")

    @precondition(lambda self: self.runs)
    @rule(
        pick=st.integers(0, 9),
        action=st.sampled_from(["approve", "reject", "respond"]),
        stale=st.integers(0, 3),
    )
    def decide(self, pick: int, action: str, stale: int) -> None:
        interrupts = list(Interrupt.objects.filter(run=self._run(pick)).order_by("id"))
        if not interrupts:
            return
        interrupt = interrupts[pick % len(interrupts)]
        if interrupt.kind == "outcome_unknown":
            action = "respond" if self._is_booked(interrupt) else "approve"
        more = {"approve": {}, "reject": {"reason": "no"}, "respond": {"response": "It is so."}}[
            action
        ]
        said = (interrupt.id, action)
        may = stale != 0 and (interrupt.status == "open" or said in self.said)
        if stale == 0:
            interrupt.version += 1  # they were shown something else
        elif may:
            self.said.add(said)
        self._expect(
            may,
            lambda: decide_on(interrupt, self.world.bob, action, **more),
            f"a decision ({action})",
        )

    @precondition(lambda self: self.runs)
    @rule(pick=st.integers(0, 9))
    def expire(self, pick: int) -> None:
        """Nobody decides in time."""
        Interrupt.objects.filter(run=self._run(pick), status="open").update(expires_at=LONG_AGO)
        decisions.expire_due()

    # Workers.

    @precondition(lambda self: any(r.status == "pending" for r in self._now()))
    @rule(pick=st.integers(0, 9))
    def claim(self, pick: int) -> None:
        pending = [run for run in self._now() if run.status == "pending"]
        run = pending[pick % len(pending)]
        taken = transitions.claim(f"worker-{next(_names)}", run.id)
        assert taken, "a pending run that is due can be claimed"
        claim, hold = taken[0], Hold(taken[0])
        self._forget(run.id)
        try:
            work = restore.restore(claim, restore.load_run(claim))
        except InterlockError as error:
            raise AssertionError(f"the state does not verify: {error}") from error
        self.workers.append(Worker(run.id, claim, work, hold))

    @precondition(lambda self: self.workers)
    @rule(pick=st.integers(0, 9), many=st.integers(1, 3))
    def step(self, pick: int, many: int) -> None:
        worker = self._worker(pick)
        for _ in range(many):
            if worker not in self.workers:
                return
            self._guarded(worker, lambda: self._take(worker))

    @precondition(lambda self: self.workers)
    @rule(pick=st.integers(0, 9), at=st.integers(0, 9))
    def crash(self, pick: int, at: int) -> None:
        """The process dies at its n-th point from here; if it has fewer, it was a step."""
        worker = self._worker(pick)

        def die(name: str) -> None:
            raise Crash

        kept, failpoints.ACTIONS["raise"] = failpoints.ACTIONS["raise"], die
        failpoints.arm(at, "raise")
        try:
            self._guarded(worker, lambda: self._take(worker))
        except Crash:
            connection.close()
            if worker in self.workers:
                self.workers.remove(worker)
        finally:
            failpoints.disarm()
            failpoints.ACTIONS["raise"] = kept

    @precondition(lambda self: self.workers)
    @rule(pick=st.integers(0, 9))
    def beat(self, pick: int) -> None:
        worker = self._worker(pick)
        renewed = transitions.heartbeat([worker.claim])
        assert renewed == (set() if worker.stale else {worker.run_id}), "whose lease was renewed"

    @precondition(lambda self: self.workers)
    @rule(pick=st.integers(0, 9))
    def release(self, pick: int) -> None:
        """The process is asked to end."""
        worker = self._worker(pick)
        given_back = transitions.release(worker.claim)
        assert (given_back is None) == worker.stale, "who can give a run back"
        self.workers.remove(worker)

    @precondition(lambda self: any(r.status == "running" for r in self._now()))
    @rule(pick=st.integers(0, 9))
    def lose(self, pick: int) -> None:
        """A lease is over; its worker sleeps, and may wake at any time."""
        running = [run for run in self._now() if run.status == "running"]
        run = running[pick % len(running)]
        RunLease.objects.filter(run=run).update(until=LONG_AGO)
        assert reconcile.reconcile() >= 1
        assert fresh(run).status != "running"
        self._forget(run.id)

    # Time.

    @precondition(lambda self: any(r.status == "waiting" for r in self._now()))
    @rule()
    def wake(self) -> None:
        waiting = [run.id for run in self._now() if run.status == "waiting"]
        Run.objects.filter(id__in=waiting).update(available_at=LONG_AGO)
        reconcile.wake_due()
        assert {run.status for run in self._now() if run.id in waiting} == {"pending"}

    @precondition(lambda self: self.runs)
    @rule(pick=st.integers(0, 9))
    def be_late(self, pick: int) -> None:
        """A run's time is over: whoever holds it notices by itself, else the tick does."""
        run = self._run(pick)
        if run.deadline_at is None or run.state.ended:
            return
        Run.objects.filter(id=run.id).update(deadline_at=LONG_AGO)
        for worker in self.workers:
            if worker.run_id == run.id and not worker.stale:
                worker.hold.end("deadline")
        reconcile.reconcile()
        if run.status in ("pending", "waiting"):
            assert fresh(run).status in ("timed_out", "cancelled")

    # What always holds.

    @invariant()
    def everything_holds(self) -> None:
        if self.runs:
            broken = violations([run.id for run in self.runs])
            assert not broken, broken
        self._check_moves()
        twice = [line for line, n in Counter(effects()).items() if n > 1]
        assert not twice, twice

    def _check_moves(self) -> None:
        for run in self.runs:
            for event in run.events.filter(type="run_status", seq__gt=1):
                move = RunStatus(event.data["from"]), RunStatus(event.data["to"])
                assert event.data["cause"] in RUN_MOVES.get(move, ()), event.data

    # Helpers.

    @property
    def alice(self) -> Any:
        return actor(self.world.alice)

    def _now(self) -> list[Run]:
        return [fresh(run) for run in self.runs]

    def _run(self, pick: int) -> Run:
        return fresh(self.runs[pick % len(self.runs)])

    def _worker(self, pick: int) -> Worker:
        return self.workers[pick % len(self.workers)]

    def _forget(self, run_id: uuid.UUID) -> None:
        """Whoever had the run is stale now, and by its own clock has slept for long."""
        for worker in self.workers:
            if worker.run_id == run_id:
                worker.stale = True
                worker.work.leased_at = float("-inf")

    def _take(self, worker: Worker) -> None:
        outcome = drive._step(worker.work, worker.hold)
        if not isinstance(outcome, Go):
            if outcome != Stop("lost"):
                drive._let_go(worker.work, outcome)
            self.workers.remove(worker)

    def _guarded(self, worker: Worker, act: Callable[[], Any]) -> None:
        """A stale worker is refused and changes nothing; another one is not."""
        before = fresh(Run(id=worker.run_id))
        try:
            act()
        except Fenced:
            assert worker.stale, "a worker that holds its run was refused"
            self.workers.remove(worker)
        if worker.stale:
            after = fresh(Run(id=worker.run_id))
            assert (after.version, after.last_seq) == (before.version, before.last_seq), "it wrote"

    def _is_booked(self, interrupt: Interrupt) -> bool:
        key = interrupt.tool_call.idempotency_key
        own = f"pay {interrupt.run.input}"
        return any(key in line or line == own for line in effects())

    def _expect(self, may: bool, act: Callable[[], Any], what: str) -> None:
        try:
            act()
        except InterlockError as error:
            assert not may, f"{what} was refused: {error}"
        else:
            assert may, f"{what} was allowed"

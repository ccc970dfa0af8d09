"""kill -9 or a long sleep at every point of a run with each kind of tool and an approval: every effect once, every
run ends right.
"""

from __future__ import annotations

from collections import Counter

import pytest

from runtime_core.loop.drive import advance
from runtime_core.models import Checkpoint, Interrupt, Run
from tests.runtime.tools import effects, effects_file
from tests.runtime.world import (
    World,
    call,
    calls,
    decide_on,
    events,
    expire_lease,
    fresh,
    open_interrupts,
    statuses,
    texts,
)
from tests.runtime.zygote import Zygote

pytestmark = pytest.mark.faults

TURNS = [
    {"text": "First a look, and a note.", "calls": [call("look", at="a"), call("note", text="n1")]},
    {"text": "Now the book.", "calls": [call("ledger_append", text="pay-1")]},
    {"text": "And the charge.", "calls": [call("charge", amount=5)]},
    {"text": "Done."},
]
# Far more than a run has; the tests themselves find out how many there are.
MOST_POINTS = 200
# Where the intent of a call may be stored and its result not.
# There the sleeper holds locks until the database cuts it off; test_stale_worker.py waits for that.
LOCKED = "commit.inside"
AROUND_A_TOOL = {"commit.after", "tool.before", "tool.after", "commit.before", "commit.inside",
                 "hint.before", "hint.after",
                 "append.before", "append.after"}


class Matrix:
    """Runs of one agent that come to harm at one point after the other."""

    def __init__(self, world: World, zygote: Zygote) -> None:
        self.world = world
        self.zygote = zygote
        self.agent = world.agent(TURNS, name="matrix")
        self._first_leg = MOST_POINTS

    def begin(self) -> Run:
        """A new run, with an empty book of effects."""
        effects_file().unlink(missing_ok=True)
        return self.world.run_of(self.agent)

    def harm(self, run: Run, at: int, action: str) -> dict[str, object]:
        """Bring the run to its `at`-th point and kill or stop the worker there; its answer, `{}` if it ended before."""
        if at < self._first_leg:
            answer = self.zygote.drive(run.id, at=at, action=action)
            if answer["signal"] or "stopped" in answer:
                return answer
            self._first_leg = len(answer["points"])
        else:
            advance("leg", run.id)
        for interrupt in open_interrupts(run):
            decide_on(interrupt, self.world.bob)
        answer = self.zygote.drive(run.id, at=at - self._first_leg, action=action)
        return answer if answer["signal"] or "stopped" in answer else {}

    def bring_to_end(self, run: Run) -> tuple[Run, list[Interrupt]]:
        """Drive with a healthy worker, deciding whatever is asked; the ended run and what was asked."""
        asked: list[Interrupt] = []
        for _ in range(20):
            run = fresh(run)
            if run.state.ended:
                return run, asked
            if run.status == "running":
                expire_lease(run)
            for interrupt in open_interrupts(run):
                asked.append(interrupt)
                self._decide(interrupt)
            advance("healer", run.id)
        raise AssertionError(f"still {run.status} after 20 workers")

    def _decide(self, interrupt: Interrupt) -> None:
        """A person looks into the book before they say what happened."""
        if interrupt.kind == "outcome_unknown" and effects().count("pay-1") == 1:
            decide_on(interrupt, self.world.bob, "respond", response="it is in the book")
        else:
            decide_on(interrupt, self.world.bob)


@pytest.fixture
def matrix(world: World, zygote: Zygote) -> Matrix:
    return Matrix(world, zygote)


def check(run: Run) -> None:
    assert run.status == "completed", run.error
    counts = Counter(effects())
    assert counts["pay-1"] == 1
    assert sum(n for line, n in counts.items() if line.startswith("charge:")) == 1
    assert sum(n for line, n in counts.items() if line.endswith(":n1")) == 1
    ledger = calls(run)
    assert [c.status for c in ledger] == ["succeeded"] * 4
    assert len({c.idempotency_key for c in ledger}) == 4
    assert any(line.startswith(ledger[1].idempotency_key) for line in effects())
    assert statuses(run)[-1] == ("running", "completed", "finished")
    kinds = [e.type for e in events(run)]
    assert kinds.count("done") == 1 and kinds[-1] == "done"
    texts(run)
    results = Counter(e.data["call_id"] for e in events(run, "tool_call_result"))
    assert results == Counter(c.call_id for c in ledger)
    assert Interrupt.objects.filter(run=run, kind="tool_approval").count() == 1
    assert not Interrupt.objects.filter(run=run, status="open").exists()
    assert Checkpoint.objects.filter(run=run).exists()


@pytest.mark.timeout(240)
def test_b2_a_kill_at_any_point_loses_nothing_and_repeats_nothing(matrix: Matrix) -> None:
    died: list[str] = []
    for at in range(MOST_POINTS):
        run = matrix.begin()
        answer = matrix.harm(run, at, "kill")
        ended, asked = matrix.bring_to_end(run)
        check(ended)
        if not answer:
            break
        died.append(answer["points"][-1])  # type: ignore[index]
        if any(i.kind == "outcome_unknown" for i in asked):
            assert died[-1] in AROUND_A_TOOL
    assert len(died) > 30
    assert {"claim.before", "claim.after", "commit.inside", *AROUND_A_TOOL} <= set(died)


@pytest.mark.timeout(240)
def test_b4_a_worker_that_slept_past_its_lease_changes_nothing_when_it_wakes(
    matrix: Matrix,
) -> None:
    slept: list[str] = []
    for at in range(MOST_POINTS):
        run = matrix.begin()
        answer = matrix.harm(run, at, "stop")
        if not answer:
            break
        slept.append(answer["points"][-1])  # type: ignore[index]
        if slept[-1] == LOCKED:
            wake(matrix, answer)
            continue
        ended, _ = matrix.bring_to_end(run)
        before = [(e.seq, e.type) for e in events(ended)]
        wake(matrix, answer)
        assert [(e.seq, e.type) for e in events(ended)] == before
        assert fresh(run).version == ended.version
        check(fresh(run))
    assert len(slept) > 30


def test_b4_two_workers_that_slept_wake_in_any_order(matrix: Matrix) -> None:
    for first, second, oldest_first in [(2, 3, True), (6, 4, False), (8, 5, True), (12, 2, False)]:
        run = matrix.begin()
        zombie = matrix.harm(run, first, "stop")
        expire_lease(run)
        heir = matrix.zygote.drive(run.id, at=second, action="stop")
        assert LOCKED not in (zombie["points"][-1], heir["points"][-1])  # type: ignore[index]
        expire_lease(run)
        for sleeper in (zombie, heir) if oldest_first else (heir, zombie):
            wake(matrix, sleeper)
        ended, _ = matrix.bring_to_end(run)
        check(ended)


def wake(matrix: Matrix, sleeper: dict[str, object]) -> None:
    if "stopped" in sleeper:
        matrix.zygote.wait(sleeper["stopped"])  # type: ignore[arg-type]

"""kill -9 at every point of a run with each kind of tool and an approval: every effect once, every run ends right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from django.db import connection

from runtime_core.models import Checkpoint, Interrupt, Run
from runtime_core.scheduling import reconcile
from tests.runtime.tools import effects
from tests.runtime.world import World, call, calls, decide_on, events, fresh, open_interrupts, statuses, texts
from tests.runtime.zygote import Zygote

TURNS = [
    {"text": "First a look, and a note.", "calls": [call("look", at="a"), call("note", text="n1")]},
    {"text": "Now the book.", "calls": [call("ledger_append", text="pay-1")]},
    {"text": "And the charge.", "calls": [call("charge", amount=5)]},
    {"text": "Done."},
]
# Far more than a run has; the test itself finds out how many there are.
MOST_POINTS = 200


@pytest.fixture
def zygote(process_env: dict[str, str]) -> Iterator[Zygote]:
    child = Zygote(process_env)
    yield child
    child.close()


def expire_lease(run: Run) -> None:
    """The worker is gone for longer than its lease; then what beat does every two seconds."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE run_lease SET until = clock_timestamp() - interval '1 s' WHERE run_id = %s", [run.id]
        )
    reconcile.reconcile()


def bring_to_end(world: World, zygote: Zygote, run: Run) -> tuple[Run, list[Interrupt]]:
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
            if interrupt.kind == "outcome_unknown":
                happened = effects().count("pay-1") == 1
                if happened:
                    decide_on(interrupt, world.bob, "respond", response="it is in the book")
                else:
                    decide_on(interrupt, world.bob, "approve")
            else:
                decide_on(interrupt, world.bob)
        zygote.drive(run.id)
    raise AssertionError(f"still {run.status} after 20 workers")


def check(run: Run) -> None:
    assert run.status == "completed", run.error
    counts = Counter(effects())
    assert counts["pay-1"] == 1
    assert sum(n for line, n in counts.items() if line.startswith("charge:")) == 1
    assert sum(n for line, n in counts.items() if line.endswith(":n1")) == 1
    assert [c.status for c in calls(run)] == ["succeeded"] * 4
    assert statuses(run)[-1] == ("running", "completed", "finished")
    kinds = [e.type for e in events(run)]
    assert kinds.count("done") == 1 and kinds[-1] == "done"
    texts(run)
    results = Counter(e.data["call_id"] for e in events(run, "tool_call_result"))
    assert set(results.values()) == {1}
    assert Interrupt.objects.filter(run=run, kind="tool_approval").count() == 1
    assert not Interrupt.objects.filter(run=run, status="open").exists()
    assert Checkpoint.objects.filter(run=run).exists()


@pytest.mark.timeout(300)
def test_b2_a_kill_at_any_point_loses_nothing_and_repeats_nothing(world: World, zygote: Zygote) -> None:
    points: list[str] = []
    for at in range(MOST_POINTS):
        for path in world_effects():
            path.unlink(missing_ok=True)
        run = world.start(TURNS)
        died = kill_at(world, zygote, run, at)
        points.append(died)
        ended, asked = bring_to_end(world, zygote, run)
        check(ended)
        unknown = [i for i in asked if i.kind == "outcome_unknown"]
        # Only between the intent and the result of the tool that nobody can ask may a person be asked.
        assert bool(unknown) <= (died in ("commit.after", "tool.before", "tool.after", "commit.before",
                                          "commit.inside", "append.before", "append.after"))
        if not died:
            break
    assert len(points) > 30
    assert {"claim.before", "claim.after", "append.before", "append.after", "commit.before", "commit.after",
            "tool.before", "tool.after"} <= set(points)


def world_effects() -> list:  # type: ignore[type-arg]
    from tests.runtime.tools import effects_file

    return [effects_file()]


def kill_at(world: World, zygote: Zygote, run: Run, at: int) -> str:
    """Drive with workers until the `at`-th point of all of them is hit and the worker dies there; its name, or ''."""
    done = 0
    for _ in range(10):
        answer = zygote.drive(run.id, at=at - done)
        if answer["signal"] == 9:
            return str(answer["points"][-1])
        done += len(answer["points"])
        run = fresh(run)
        if run.state.ended:
            return ""
        for interrupt in open_interrupts(run):
            decide_on(interrupt, world.bob)
    raise AssertionError("the run does not end")

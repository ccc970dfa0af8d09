"""Many decisions on one interrupt at the same moment, over real connections: one counts."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack
from typing import Any

import pytest
from django.conf import settings
from django.db import connection

from approvals.models import Decision
from runtime_core.commands import cancel_run
from runtime_core.models import Event, Interrupt, Run
from runtime_core.values import Actor
from tests.approvals import racer
from tests.approvals.world import World, audited, make_user

pytestmark = [pytest.mark.race, pytest.mark.django_db(transaction=True)]

ACTIONS = ("approve", "reject", "edit", "respond")
SETTLED = {"approve": "approved", "reject": "rejected", "edit": "edited", "respond": "answered"}


@pytest.fixture
def world(transactional_db: None) -> World:
    return World()


def mixed(count: int, *names: str) -> list[tuple[str, str]]:
    """`count` opinions, by turns of every person and every action."""
    return [(names[n % len(names)], ACTIONS[n // len(names) % len(ACTIONS)]) for n in range(count)]


def check(interrupt: Interrupt, outcomes: racer.Outcomes, racers: int, denied: int = 0) -> None:
    """One opinion won (and its repeats by the same person); all others are told why not."""
    assert len(outcomes) == racers
    won = {(name, action) for name, action, outcome in outcomes if outcome == "won"}
    assert len(won) == 1
    rest = Counter(outcome for _, _, outcome in outcomes if outcome != "won")
    assert set(rest) <= {"already_decided", "not_allowed"}
    assert rest["not_allowed"] == denied
    ((name, action),) = won
    settled = Interrupt.objects.select_related("decided_by").get(id=interrupt.id)
    assert (settled.status, settled.decided_by.username) == (SETTLED[action], name)
    kept = Decision.objects.get(interrupt=interrupt)
    assert (kept.actor_name, kept.action) == (name, action)
    entries = [one for one in audited("interrupt.decided") if one["object"] == str(interrupt.id)]
    assert [(one["actor"], one["decision"]) for one in entries] == [(name, action)]
    assert Run.objects.get(id=interrupt.run_id).status == "pending"


def test_a1_of_fifty_threads_one_decides(world: World) -> None:
    opinions = mixed(50, "approver", "approver2", "viewer")
    denied = sum(name == "viewer" for name, _ in opinions)
    for _ in range(3):
        interrupt = world.ask()

        outcomes = racer.start_all(opinions, **shot_at(interrupt))

        check(interrupt, outcomes, 50, denied)


@pytest.mark.timeout(300)
def test_a1_of_fifty_decisions_from_separate_processes_one_counts_in_each_of_twenty_rounds(
    world: World, process_env: dict[str, str]
) -> None:
    opinions = [f"{name}:{action}" for name, action in mixed(50, "approver", "approver2")]
    with ExitStack() as running:
        processes = [running.enter_context(racing(opinions[n::5], process_env)) for n in range(5)]
        for process in processes:
            assert said_by(process) == "ready"
        for _ in range(20):
            interrupt = world.ask()
            order = json.dumps(shot_at(interrupt)) + "\n"

            for process in processes:
                process.stdin.write(order)
                process.stdin.flush()
            told = [json.loads(said_by(process)) for process in processes]

            check(interrupt, [tuple(one) for part in told for one in part], 50)


def test_a_double_click_settles_one_interrupt_and_never_the_next_of_the_run(world: World) -> None:
    run = world.run()
    first, second = world.ask(run=run), world.ask(run=run)

    outcomes = racer.start_all([("approver", "approve")] * 2, **shot_at(first))

    assert [outcome for _, _, outcome in outcomes] == ["won", "won"]
    assert Decision.objects.filter(interrupt__run=run).count() == 1
    assert Interrupt.objects.get(id=second.id).status == "open"


def test_people_who_race_from_many_accounts_each_learn_the_same_outcome(world: World) -> None:
    names = [make_user(f"person{n}", world.project, "approver").username for n in range(12)]
    interrupt = world.ask()

    outcomes = racer.start_all([(name, "approve") for name in names], **shot_at(interrupt))

    check(interrupt, outcomes, len(names))


def test_a1_a_quorum_that_everybody_rushes_to_is_made_once_by_as_many_as_it_takes(
    world: World,
) -> None:
    world.policy(required=3)
    names = [make_user(f"person{n}", world.project, "approver").username for n in range(16)]
    for rejecting in (0, 4):
        interrupt = world.ask(ruled=True)
        opinions = [(name, "approve") for name in names[rejecting:]]
        opinions += [(name, "reject") for name in names[:rejecting]]

        outcomes = racer.start_all(opinions, **shot_at(interrupt))

        votes = Decision.objects.filter(interrupt=interrupt).order_by("created_at")
        counted = {(vote.actor_name, vote.action) for vote in votes}
        assert counted == {(name, action) for name, action, outcome in outcomes if outcome == "won"}
        assert {outcome for *_, outcome in outcomes} == {"won", "already_decided"}
        settled = Interrupt.objects.get(id=interrupt.id)
        rejected = [vote for vote in votes if vote.action == "reject"]
        assert settled.status == ("rejected" if rejected else "approved")
        assert len(rejected) <= 1
        assert len(votes) == 3 or (rejected and len(votes) <= 3)
        moved = Event.objects.filter(run=interrupt.run_id, type="run_status", data__cause="decided")
        assert moved.count() == 1


def test_d4_an_approval_and_a_cancel_never_both_have_their_way(world: World) -> None:
    for _ in range(25):
        interrupt = world.ask()
        cancelling = threading.Thread(target=cancel, args=(world, interrupt))

        cancelling.start()
        outcomes = racer.start_all(
            [("approver", "approve")], **{**shot_at(interrupt), "start_at": time.time()}
        )
        cancelling.join()

        outcome = outcomes[0][2]
        interrupt.refresh_from_db()
        run = Run.objects.get(id=interrupt.run_id)
        assert run.status == "cancelled"
        assert (outcome, interrupt.status) in {("won", "approved"), ("withdrawn", "withdrawn")}
        assert Decision.objects.filter(interrupt=interrupt).exists() == (outcome == "won")
        assert interrupt.tool_call.started_at is None


def cancel(world: World, interrupt: Interrupt) -> None:
    try:
        cancel_run(Actor(world.operator.pk, "operator"), interrupt.run)
    finally:
        connection.close()


def shot_at(interrupt: Interrupt) -> dict[str, Any]:
    """When and at what all decide; late enough that every racer stands at the line."""
    return {
        "interrupt": str(interrupt.id),
        "digest": interrupt.digest,
        "start_at": time.time() + 0.4,
    }


def racing(opinions: list[str], env: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.approvals.racer", *opinions],
        env=env,
        cwd=settings.BASE_DIR,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def said_by(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, "a racer ended"
    return line.strip()

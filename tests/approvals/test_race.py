"""Many decisions on one interrupt at the same moment, over real connections: one counts."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import Counter

import pytest
from django.conf import settings
from django.db import connection

from approvals.models import Decision
from runtime_core.models import Interrupt, Run
from tests.approvals import racer
from tests.approvals.world import World, audited, make_user

pytestmark = [pytest.mark.race, pytest.mark.django_db(transaction=True)]

ACTIONS = ("approve", "reject", "edit", "respond")
SETTLED = {"approve": "approved", "reject": "rejected", "edit": "edited", "respond": "answered"}

Outcomes = list[tuple[str, str, str]]


@pytest.fixture
def world(transactional_db: None) -> World:
    return World()


def mixed(count: int, *names: str) -> list[tuple[str, str]]:
    """`count` opinions, by turns of every person and every action."""
    return [(names[n % len(names)], ACTIONS[n // len(names) % len(ACTIONS)]) for n in range(count)]


def check(interrupt: Interrupt, outcomes: Outcomes, racers: int, denied: int = 0) -> None:
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
    for _ in range(3):
        interrupt = world.ask()
        opinions = mixed(50, "approver", "approver2", "viewer")
        denied = sum(name == "viewer" for name, _ in opinions)
        outcomes: Outcomes = []
        start_at = time.time() + 0.5
        threads = [
            threading.Thread(
                target=racer.race,
                args=(interrupt.id, 1, interrupt.digest, start_at, name, action, outcomes),
            )
            for name, action in opinions
        ]

        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        check(interrupt, outcomes, 50, denied)


@pytest.mark.timeout(240)
def test_a1_of_fifty_decisions_from_separate_processes_one_counts(
    world: World, process_env: dict[str, str]
) -> None:
    for _ in range(3):
        interrupt = world.ask()
        opinions = [f"{name}:{action}" for name, action in mixed(50, "approver", "approver2")]
        start_at = str(time.time() + 6)
        running = [
            subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.approvals.racer"),
                    *(str(interrupt.id), "1", interrupt.digest, start_at),
                    *opinions[n::5],
                ],
                env=process_env,
                cwd=settings.BASE_DIR,
                stdout=subprocess.PIPE,
            )
            for n in range(5)
        ]

        outcomes: Outcomes = []
        for process in running:
            told, _ = process.communicate(timeout=60)
            assert process.returncode == 0
            outcomes += [tuple(one) for one in json.loads(told)]

        check(interrupt, outcomes, 50)


def test_a_double_click_settles_one_interrupt_and_never_the_next_of_the_run(world: World) -> None:
    run = world.run()
    first, second = world.ask(run=run), world.ask(run=run)
    outcomes: Outcomes = []
    start_at = time.time() + 0.2

    threads = [
        threading.Thread(
            target=racer.race,
            args=(first.id, 1, first.digest, start_at, "approver", "approve", outcomes),
        )
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [outcome for _, _, outcome in outcomes] == ["won", "won"]
    assert Decision.objects.filter(interrupt__run=run).count() == 1
    assert Interrupt.objects.get(id=second.id).status == "open"


def test_people_who_race_from_many_accounts_each_learn_the_same_outcome(world: World) -> None:
    names = [make_user(f"person{n}", world.project, "approver").username for n in range(12)]
    interrupt = world.ask()
    outcomes: Outcomes = []
    start_at = time.time() + 0.5
    threads = [
        threading.Thread(
            target=racer.race,
            args=(interrupt.id, 1, interrupt.digest, start_at, name, "approve", outcomes),
        )
        for name in names
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    check(interrupt, outcomes, len(names))
    connection.close()

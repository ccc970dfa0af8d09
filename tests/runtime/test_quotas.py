"""Quotas: never one too many at any instant, whoever races, dies or changes them; and everybody gets a turn."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from django.db import connection, transaction

from runtime_core import sql_claim, transitions
from runtime_core.limits import RuntimeLimits
from runtime_core.loop import drive as drive_module
from runtime_core.loop.control import watch
from runtime_core.models import Agent, Permit, Quota, QuotaKind, Run, Thread
from runtime_core.scheduling import queue, quotas, reconcile
from runtime_core.states import RunStatus
from runtime_core.transitions import Seen, StepCommit
from runtime_core.values import Claim
from tests.runtime.world import (
    World,
    call,
    drive,
    expire_lease,
    fresh,
    make_world,
    statuses,
    together,
)

ENDS = [{"text": "ok"}]


def limit(kind: QuotaKind, at_once: int, of: object = "") -> Quota:
    """A quota, as the admin sets it."""
    named = {"project": "project_id", "agent": "agent_id"}.get(kind.value)
    row = Quota.objects.filter(kind=kind.value, key=str(of)).first() or Quota(
        kind=kind.value, key=str(of), **({named: of} if named else {"name": str(of)})
    )
    row.at_once = at_once
    with transaction.atomic():
        row.save()
        quotas.apply(row)
    return row


def pile(world: World, agent: str, count: int) -> None:
    """So many runs in the queue, copies of one, without its conversation."""
    model = world.run_of(agent)
    threads = [Thread(project=world.project, created_by=world.alice) for _ in range(1, count)]
    Thread.objects.bulk_create(threads)
    copied = {
        field.attname: getattr(model, field.attname)
        for field in Run._meta.concrete_fields
        if field.attname not in ("id", "thread_id", "available_at", "created_at")
    }
    Run.objects.bulk_create(Run(thread=thread, **copied) for thread in threads)


def finish(claim: Claim) -> None:
    """What a worker's last commit does to a run."""
    run = Run.objects.get(id=claim.run_id)
    step = StepCommit(to=RunStatus.COMPLETED, cause="finished", output="")
    transitions.commit_step(claim, Seen(run.version, run.last_seq, False, False), step)


def take(worker: str = "w") -> Claim | None:
    found = transitions.claim(worker)
    return found[0] if found else None


def running(**of: object) -> int:
    return Run.objects.filter(status="running", **of).count()


@contextmanager
def watched(most: Callable[[], int]) -> Iterator[list[int]]:
    """Samples of what runs at once, taken all the time on a connection of its own."""
    seen: list[int] = []
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            seen.append(most())
        connection.close()

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield seen
    finally:
        stop.set()
        watcher.join()


@pytest.mark.race
def test_never_one_over_the_limit_and_every_run_ends(world: World) -> None:
    agent = world.agent(ENDS, name="a")
    pile(world, agent, 120)
    limit(QuotaKind.ALL, 6)
    limit(QuotaKind.PROJECT, 4, world.project.id)
    limit(QuotaKind.AGENT, 3, Agent.objects.get().id)

    def work() -> int:
        done, until = 0, time.monotonic() + 30
        while Run.objects.filter(status="pending").exists() and time.monotonic() < until:
            claim = take()
            if claim:
                done += 1
                finish(claim)
        return done

    with watched(running) as seen:
        counts = together(*[work] * 6)
    assert sum(counts) == 120, counts
    assert max(seen) <= 3
    assert not Permit.objects.exclude(held_by=None).exists()


def test_each_kind_of_quota_holds_alone_and_says_so(world: World) -> None:
    other = make_world()
    one, two = world.agent(ENDS, name="one"), world.agent(ENDS, name="two")
    elsewhere = other.agent(ENDS, name="one")
    for place, agent in ((world, one), (world, one), (world, two), (other, elsewhere)):
        place.run_of(agent)
    agent_quota = limit(QuotaKind.AGENT, 1, Agent.objects.get(project=world.project, name="one").id)
    first = take()
    assert first
    others = list(iter(take, None))
    assert len(others) == 2, "another agent, another project"
    [left] = Run.objects.filter(status="pending")
    assert transitions.claim("w", left.id) is None, "a hint is not a way around"
    place = queue.places([left])[left.id]
    assert (place.ahead, place.reason) == (0, "no worker is running")
    agent_quota.delete()
    limit(QuotaKind.PROJECT, 2, world.project.id)
    assert take() is None
    limit(QuotaKind.PROJECT, 5, world.project.id)
    limit(QuotaKind.ALL, 3)
    assert take() is None
    limit(QuotaKind.ALL, 4)
    assert take()


def test_a_lower_limit_breaks_nothing_and_is_kept_from_then_on(world: World) -> None:
    agent = world.agent(ENDS, name="a")
    pile(world, agent, 12)
    limit(QuotaKind.PROJECT, 5, world.project.id)
    claims = list(iter(take, None))
    assert len(claims) == 5
    limit(QuotaKind.PROJECT, 3, world.project.id)
    assert (running(), take()) == (5, None), "what ran before counts, and runs on"
    kept = set(Permit.objects.filter(retired=False).values_list("held_by", flat=True))
    claims.sort(key=lambda claim: claim is None or claim.run_id not in kept)
    for claim in claims[:2]:
        assert claim
        finish(claim)
        assert take() is None, "a place is free, and still too much runs"
        quotas.settle()
    assert (running(), take()) == (3, None)
    assert claims[2]
    finish(claims[2])
    quotas.settle()
    assert take() is not None
    limit(QuotaKind.PROJECT, 1, world.project.id)
    assert take() is None
    limit(QuotaKind.PROJECT, 6, world.project.id)
    assert len(list(iter(take, None))) == 3
    assert (running(), Permit.objects.filter(retired=True).count()) == (6, 0)
    limit(QuotaKind.PROJECT, 0, world.project.id)
    Run.objects.filter(status="running").update(lease_epoch=99)
    quotas.settle()
    quotas.settle()
    assert (Permit.objects.count(), take()) == (0, None)


def test_places_of_the_lost_are_free_again_and_those_of_zombies_stay_with_their_heirs(
    world: World,
) -> None:
    limit(QuotaKind.PROJECT, 1, world.project.id)
    run = world.start(ENDS)
    zombie = take()
    assert zombie
    expire_lease(run)
    assert not Permit.objects.exclude(held_by=None).exists()
    heir = take()
    assert heir and heir.run_id == zombie.run_id and heir.places == zombie.places
    with pytest.raises(transitions.Fenced):
        finish(zombie)
    quotas.settle()
    assert Permit.objects.get().epoch == heir.epoch
    assert transitions.release(heir)
    assert Permit.objects.get().held_by is None
    # A holder that is gone without a word: the claim was committed, and the run moved by hand.
    again = take()
    assert again
    Run.objects.filter(id=run.id).update(status="pending")
    reconcile.reconcile()
    assert Permit.objects.get().held_by is None


def test_every_project_has_its_turn_beside_one_with_a_long_queue(world: World) -> None:
    hot = world.agent(ENDS, name="hot")
    pile(world, hot, 300)
    small = [make_world() for _ in range(9)]
    for place in small:
        pile(place, place.agent(ENDS, name="small"), 3)
    queue.count()
    claims = [take() for _ in range(30)]
    of = {place.project.id: 0 for place in (world, *small)}
    for run in Run.objects.filter(id__in=[claim.run_id for claim in claims if claim]):
        of[run.project_id] += 1
    assert set(of.values()) == {3}, "ten projects, thirty claims"
    assert len(queue.due(3)) == 3
    assert all(take() for _ in range(5)), "and the long one has the rest"


def test_priority_goes_first_within_a_project_over_all_its_agents(world: World) -> None:
    one, two = world.agent(ENDS, name="one"), world.agent(ENDS, name="two")
    runs = [world.run_of(agent) for agent in (one, two, one, two)]
    Run.objects.filter(id=runs[2].id).update(priority=1)
    Run.objects.filter(id=runs[0].id).update(priority=-1)
    places = queue.places([fresh(run) for run in runs])
    assert [places[run.id].ahead for run in runs] == [3, 1, 0, 2]
    taken = [claim.run_id for claim in iter(take, None)]
    assert taken == [runs[2].id, runs[1].id, runs[3].id, runs[0].id]
    assert queue.places([fresh(run) for run in runs]) == {}


@pytest.mark.parametrize(
    "statement", [sql_claim.CLAIM_ANY, sql_claim.CLAIM_ANY_LIMITED], ids=["free", "limited"]
)
def test_the_claim_reads_its_index_however_long_the_queue_is(world: World, statement: str) -> None:
    pile(world, world.agent(ENDS, name="a"), 1_500)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE run, quota, permit, project_queue")
        cursor.execute(
            "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + statement,
            {"worker": "w", "lease_seconds": 30},
        )
        plan = cursor.fetchone()[0][0]["Plan"]

    def nodes(node: dict[str, object]) -> Iterator[dict[str, object]]:
        yield node
        for child in node.get("Plans", []):  # type: ignore[attr-defined]
            yield from nodes(child)

    scans = [
        n for n in nodes(plan) if n.get("Relation Name") == "run" and "Scan" in str(n["Node Type"])
    ]
    assert {n["Index Name"] for n in scans if "Index" in str(n["Node Type"])} >= {"run_to_claim"}
    assert all("Seq" not in str(n["Node Type"]) for n in scans), scans
    assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 200


def test_a_long_run_gives_its_slot_to_others_once_it_has_come_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = world.start([{"calls": [call("look")]}, {"calls": [call("look")]}, {"text": "ok"}])
    short = dataclasses.replace(RuntimeLimits(), turn_seconds=0.000_001)
    monkeypatch.setattr(drive_module, "limits", lambda: short)
    monkeypatch.setattr(watch, "crowded", True)
    assert drive(run).status == "pending"
    assert statuses(run)[-1] == ("running", "pending", "turn")
    assert fresh(run).steps == 2, "a model's step and the call that it began"
    assert drive(run).status == "pending"
    monkeypatch.setattr(watch, "crowded", False)
    assert drive(run).status == "completed"

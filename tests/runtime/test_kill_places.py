"""A worker dies in each place that matters; the run ends right and its effect happens once, or a person is asked."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from runtime_core.models import Interrupt, Run, RunLease
from runtime_core.scheduling import reconcile
from tests.runtime.tools import at_point, effects
from tests.runtime.workers import Worker, advance
from tests.runtime.world import (
    World,
    call,
    calls,
    decide_on,
    drive,
    events,
    expire_lease,
    fresh,
    open_interrupts,
    statuses,
    texts,
    wait_until,
)
from tests.runtime.zygote import Zygote

pytestmark = pytest.mark.faults

PAY = [{"text": "I pay.", "calls": [call("ledger_append", text="pay")]}, {"text": "Paid."}]


def approved(world: World) -> Run:
    """A run whose payment a person has approved."""
    run = drive(world.start(PAY))
    decide_on(open_interrupts(run)[0], world.bob)
    return run


def recovered(run: Run) -> Run:
    """After the lease of the dead worker is over, another has taken the run."""
    assert fresh(run).status == "running"
    expire_lease(run)
    return drive(run, "heir")


def ends_well(run: Run) -> None:
    assert run.status == "completed", run.error
    assert effects() == ["pay"]
    assert events(run)[-1].type == "done"
    statuses(run)


def asked_about(run: Run) -> Interrupt:
    assert run.status == "interrupted"
    [interrupt] = open_interrupts(run)
    assert interrupt.kind == "outcome_unknown"
    assert calls(run)[0].status == "unknown"
    return interrupt


def test_b2_during_the_model_stream(world: World, zygote: Zygote) -> None:
    text = "A long story. " * 40
    run = world.start([{"text": text}], chunk_ms=5)

    assert zygote.drive(run.id, at=3, only="append.after")["signal"] == 9
    torn = "".join(texts(run).values())
    run = recovered(run)

    assert run.status == "completed"
    assert 0 < len(torn) < len(text)
    first, second = texts(run).values()
    assert (first, second.strip()) == (torn, text.strip())
    assert (run.output or "").strip() == text.strip()


def test_b2_before_the_intent_row(world: World, zygote: Zygote) -> None:
    run = approved(world)
    assert zygote.drive(run.id, at=0, only="commit.before")["signal"] == 9
    assert calls(run)[0].status == "approved"
    ends_well(recovered(run))


def test_b2_after_the_intent_row_a_person_is_asked(world: World, zygote: Zygote) -> None:
    run = approved(world)
    assert zygote.drive(run.id, at=0, only="commit.after")["signal"] == 9
    assert calls(run)[0].status == "executing"
    run = recovered(run)

    decide_on(asked_about(run), world.bob)
    ends_well(drive(run))
    assert calls(run)[0].attempts == 2


def test_b2_during_the_tool_a_person_is_asked(world: World, zygote: Zygote) -> None:
    run = approved(world)
    at_point("kill", "before-effect").touch()
    assert zygote.drive(run.id)["signal"] == 9
    run = recovered(run)

    assert effects() == []
    decide_on(asked_about(run), world.bob)
    ends_well(drive(run))


def test_b2_after_the_effect_and_before_the_result_a_person_is_asked(
    world: World, zygote: Zygote
) -> None:
    run = approved(world)
    at_point("kill", "after-effect").touch()
    assert zygote.drive(run.id)["signal"] == 9
    assert effects() == ["pay"]
    run = recovered(run)

    decide_on(asked_about(run), world.bob, "respond", response="The bank says: it is paid.")
    run = drive(run)
    ends_well(run)
    assert calls(run)[0].result_text == "The bank says: it is paid."


def test_b2_a_person_who_rejects_an_unknown_outcome_stops_the_run(
    world: World, zygote: Zygote
) -> None:
    run = approved(world)
    at_point("kill", "after-effect").touch()
    assert zygote.drive(run.id)["signal"] == 9
    run = recovered(run)

    decide_on(asked_about(run), world.bob, "reject", reason="I must look into it")
    run = drive(run)
    assert run.status == "failed"
    assert run.error and run.error["code"] == "outcome_unknown"
    assert statuses(run)[-1] == ("running", "failed", "stopped")
    assert effects() == ["pay"]


def test_b2_after_the_commit_and_before_the_broadcast(world: World, zygote: Zygote) -> None:
    run = approved(world)
    assert zygote.drive(run.id, at=1, only="commit.after")["signal"] == 9
    assert calls(run)[0].status == "succeeded"
    ends_well(recovered(run))
    assert len(events(run, "tool_call_result")) == 1


def test_b2_tools_that_may_be_repeated_or_asked_need_no_person(
    world: World, zygote: Zygote
) -> None:
    run = world.start(
        [{"calls": [call("note", text="n"), call("charge", amount=3)]}, {"text": "ok"}]
    )
    at_point("kill", "after-note").touch()
    assert zygote.drive(run.id)["signal"] == 9
    expire_lease(run)
    at_point("kill", "after-charge").touch()
    assert zygote.drive(run.id)["signal"] == 9
    run = recovered(run)

    assert run.status == "completed"
    note, charge = calls(run)
    assert (note.attempts, charge.attempts) == (2, 1)
    assert effects() == [f"{note.idempotency_key}:n", f"charge:{charge.idempotency_key}:3"]
    assert charge.result_text == "charged 3"
    assert not Interrupt.objects.filter(run=run).exists()


def test_a_tool_that_can_say_it_did_not_happen_runs_once(world: World, zygote: Zygote) -> None:
    run = world.start([{"calls": [call("charge", amount=3)]}, {"text": "ok"}])
    at_point("kill", "before-charge").touch()
    assert zygote.drive(run.id)["signal"] == 9
    run = recovered(run)

    assert run.status == "completed"
    assert len(effects()) == 1
    assert calls(run)[0].attempts == 2


def test_a_run_that_kills_each_worker_stops_with_a_reason(world: World, zygote: Zygote) -> None:
    run = world.start([{"calls": [call("look")]}, {"text": "never"}])
    for _ in range(5):
        assert zygote.drive(run.id, at=0, only="commit.before")["signal"] == 9
        expire_lease(run)
    run = drive(run)

    assert run.status == "failed"
    assert run.error and run.error["code"] == "worker_lost"
    assert run.error["message"]
    assert statuses(run)[-1] == ("running", "failed", "worker_lost")


def test_another_worker_takes_over_from_one_that_was_killed(
    world: World, worker_env: dict[str, str]
) -> None:
    at_point("hold", "after-note").touch()
    with both(worker_env) as workers:
        run = world.start([{"calls": [call("note", text="n")]}, {"text": "ok"}])
        wait_until(at_point("hold", "after-note").with_suffix(".reached").exists, 20, "in the tool")
        holder(run, workers).kill()
        at_point("hold", "after-note").unlink()
        advance(run.id)  # duplicate hints change nothing while the lease lasts

        def beat() -> bool:
            reconcile.reconcile()
            return fresh(run).state.ended

        wait_until(beat, 25, "the run goes on", every=0.2)
    run = fresh(run)
    assert run.status == "completed"
    assert ("running", "pending", "lease_lost") in statuses(run)
    assert len(effects()) == 1


def test_a_worker_that_is_told_to_end_gives_its_run_back(
    world: World, worker_env: dict[str, str]
) -> None:
    with both(worker_env) as workers:
        run = world.start([{"text": "word " * 400}], chunk_ms=10)
        wait_until(lambda: texts(run), 20, "it streams")
        told = holder(run, workers)
        told.process.terminate()
        told.process.wait(20)
        assert ("running", "pending", "released") in statuses(run)
        reconcile.dispatch()
        wait_until(lambda: fresh(run).state.ended, 25, "the other ends it")
    run = fresh(run)
    assert run.status == "completed"
    assert (run.output or "").count("word") == 400


@contextmanager
def both(env: dict[str, str]) -> Iterator[list[Worker]]:
    """Two real workers at once."""
    workers = [Worker(env), Worker(env)]
    try:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(Worker.start, workers))
        yield workers
    finally:
        for worker in workers:
            worker.stop()


def holder(run: Run, workers: list[Worker]) -> Worker:
    """The worker that has the run's lease."""
    pid = RunLease.objects.get(run=run).worker.rpartition(":")[2]
    [found] = [worker for worker in workers if str(worker.process.pid) == pid]
    return found

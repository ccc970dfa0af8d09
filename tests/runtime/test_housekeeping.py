"""Old checkpoints go, those that people go back to stay; and a fork goes on from one with keys of its own."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from django.test import Client

from runtime_core import commands
from runtime_core.checkpoints import housekeeping, store
from runtime_core.limits import limits
from runtime_core.models import Checkpoint, Run
from runtime_core.states import KEY_REASONS
from tests.runtime.tools import effects
from tests.runtime.world import World, actor, call, calls, decide_on, drive, open_interrupts
from traces.models import AuditEntry


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the last three, every tenth step's, and two pins."""
    small = dataclasses.replace(
        limits(), checkpoints_kept=3, checkpoint_every_steps=10, checkpoint_pins_per_run=2
    )
    for module in (housekeeping, commands):
        monkeypatch.setattr(module, "limits", lambda: small)


def points(run: Run) -> list[Checkpoint]:
    return list(Checkpoint.objects.filter(run=run).order_by("id"))


@pytest.mark.usefixtures("few")
def test_a_run_keeps_its_last_checkpoints_its_key_nodes_and_what_is_pinned(world: World) -> None:
    looks: list[dict[str, Any]] = [{"calls": [call("look", at=str(n))]} for n in range(12)]
    pay = {"calls": [call("ledger_append", text="pay")]}
    short = drive(world.start([looks[0], {"text": "Short."}]))
    run = drive(world.start([*looks, pay, *looks, {"text": "Done."}], limits={"max_steps": 100}))
    client = Client()
    client.force_login(world.alice)
    pinned = points(run)[4]
    address = f"/api/v1/runs/{run.id}/checkpoints/{pinned.id}/pin"
    assert client.put(address).json()["pinned"] is True
    decide_on(open_interrupts(run)[0], world.bob)
    whole, small = len(points(run)), len(points(short))

    swept = housekeeping.sweep()  # while it goes on
    assert 0 < swept == whole - len(points(run))
    run = drive(run)
    assert run.status == "completed", run.error
    before = points(run)
    swept = housekeeping.sweep()

    kept = points(run)
    assert swept == len(before) - len(kept) > 0
    assert [p.reason for p in kept if p.reason in KEY_REASONS] == ["interrupt", "decided", "end"]
    assert pinned.id in {p.id for p in kept}
    rest = [p for p in kept if p.reason not in KEY_REASONS and p.step % 10 and not p.pinned]
    assert [p.id for p in rest] == [
        p.id for p in before if p.reason not in KEY_REASONS and p.step % 10 and not p.pinned
    ][-3:]
    assert {p.step for p in before if p.step % 10 == 0} <= {p.step for p in kept}
    assert len(points(short)) == small
    assert housekeeping.sweep(everything=True) == 0, "what is kept is kept"
    newest = store.newest(run.id)
    assert newest is not None and newest.reason == "end"

    assert client.delete(address).json()["pinned"] is False
    assert housekeeping.sweep() == 1
    assert AuditEntry.objects.filter(action__startswith="checkpoint.").count() == 2


@pytest.mark.usefixtures("few")
def test_only_who_may_operate_pins_and_only_so_many(world: World) -> None:
    run = drive(world.start([{"calls": [call("look")]}, {"text": "x"}]))
    other = drive(world.start([{"text": "x"}]))
    first, second, third = points(run)
    operator, viewer, stranger = Client(), Client(), Client()
    for client, user in ((operator, world.alice), (viewer, world.victor), (stranger, world.carol)):
        client.force_login(user)
    base = f"/api/v1/runs/{run.id}/checkpoints"

    assert viewer.put(f"{base}/{first.id}/pin").status_code == 403
    assert stranger.put(f"{base}/{first.id}/pin").status_code == 404
    assert operator.put(f"{base}/{points(other)[0].id}/pin").status_code == 404
    assert not Checkpoint.objects.filter(pinned=True).exists()
    assert operator.put(f"{base}/{first.id}/pin").status_code == 200
    assert operator.put(f"{base}/{first.id}/pin").status_code == 200, "pinned is pinned"
    assert operator.put(f"{base}/{second.id}/pin").status_code == 200
    assert operator.put(f"{base}/{third.id}/pin").status_code == 422


def test_a_fork_skips_what_was_done_and_gives_what_follows_keys_of_its_own(world: World) -> None:
    turns = [
        {"calls": [call("charge", amount=1)]},
        {"calls": [call("note", text="n"), call("charge", amount=2)]},
        {"text": "Charged."},
    ]
    run = drive(world.start(turns))
    first, _, second = calls(run)
    after_the_first = next(p for p in points(run) if p.reason == "round")
    before = effects()

    fork = commands.fork_run(
        actor(world.alice), run, after_the_first.id, {"limits": {"max_steps": 9}}
    )
    fork = drive(fork)

    assert (fork.status, fork.max_steps, fork.parent_id) == ("completed", 9, run.id)
    later = calls(fork)
    assert [(c.tool, c.status) for c in later] == [("note", "succeeded"), ("charge", "succeeded")]
    assert [c.args_digest for c in later] == [c.args_digest for c in calls(run)[1:]]
    keys = [c.idempotency_key for c in [*calls(run), *later]]
    assert len(set(keys)) == 5, (
        "a call of a fork is another call, to whoever knows calls by their keys"
    )
    assert effects()[len(before) :] == [
        f"{later[0].idempotency_key}:n", f"charge:{later[1].idempotency_key}:2",
    ]  # fmt: skip
    assert sum(f"charge:{first.idempotency_key}:" in line for line in effects()) == 1
    assert sum(f"charge:{second.idempotency_key}:" in line for line in effects()) == 1


@pytest.mark.usefixtures("few")
def test_a_graph_keeps_what_its_state_is_put_together_from(world: World) -> None:
    limits = {"max_steps": 60}
    run = world.start([], engine="graph", graph="count", input="70", limits=limits)
    run = drive(run)
    assert run.status == "paused"
    before = points(run)

    assert housekeeping.sweep() > 0

    whole = max(p.step for p in before if p.reason == "state")
    assert [p for p in points(run) if p.step >= whole] == [p for p in before if p.step >= whole]
    commands.resume_run(actor(world.alice), run, {"max_steps": 100})
    run = drive(run)
    assert (run.status, run.output) == ("completed", "counted to 70"), run.error

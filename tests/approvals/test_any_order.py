"""Whatever people do in whatever order: one outcome, by those who may, and no effect before its time."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from approvals.deciding.changing import propose, undo
from approvals.deciding.commands import Opinion, decide, override
from approvals.deciding.guard import guard
from approvals.models import VOTES, Decision
from approvals.people import delegation
from approvals.teamwork import claims
from runtime_core import clock, decisions, transitions
from runtime_core.commands import cancel_run, pause_run, resume_run
from runtime_core.errors import (
    AlreadyClaimed,
    DecisionConflict,
    InvalidInput,
    InvalidPayload,
    NotAllowed,
    NotFound,
)
from runtime_core.models import Interrupt, Run
from tests.approvals.world import World, as_actor, audited, make_user

REFUND = {"order_id": "A-1001", "amount": "20.00", "reason": "Broken on arrival."}
AMOUNTS = ("5.00", "120.00")  # the second falls under the stricter policy
MAY = ("approver", "approver2", "approver3")
REFUSALS = (
    AlreadyClaimed,
    DecisionConflict,
    InvalidInput,
    InvalidPayload,
    NotAllowed,
    NotFound,
)
PEOPLE = (*MAY, "operator", "viewer", "stranger")

# Each line as likely as the others: what leads to an effect comes often enough to be reached.
ACTS: list[st.SearchStrategy[tuple[str, ...]]] = [
    st.tuples(st.just("approve"), st.sampled_from(MAY)),
    st.tuples(st.just("approve"), st.sampled_from(MAY)),
    st.tuples(st.sampled_from(("edit", "propose")), st.sampled_from(MAY), st.sampled_from(AMOUNTS)),
    st.tuples(st.just("undo"), st.sampled_from(MAY)),
    st.tuples(st.just("work")),
    st.tuples(st.just("later")),
    st.tuples(st.sampled_from(("cancel", "expire", "lose_role", "stale", "work"))),
    st.tuples(
        st.sampled_from(("reject", "respond", "approve", "claim", "release", "delegate")),
        st.sampled_from(PEOPLE),
    ),
    st.tuples(st.just("override"), st.sampled_from(("root", "approver"))),
    st.tuples(st.sampled_from(("propose",)), st.sampled_from(PEOPLE), st.sampled_from(AMOUNTS)),
]


@dataclass
class Play:
    """One request, what is done to it, and what must be true after each act."""

    world: World
    interrupt: Interrupt
    effects: list[dict[str, Any]] = field(default_factory=list)
    stand_ins: set[str] = field(default_factory=set)

    def act(self, what: str, *more: str) -> None:
        before = Interrupt.objects.get(id=self.interrupt.id)
        try:
            getattr(self, f"_{what}", self._decide)(what, *more)
        except REFUSALS:
            now = Interrupt.objects.get(id=self.interrupt.id)
            # What is refused changes nothing, save that a policy may have come to apply.
            assert (now.status, now.digest) == (before.status, before.digest)
        self.check(before)

    def _decide(self, what: str, name: str, amount: str = "") -> None:
        now = Interrupt.objects.get(id=self.interrupt.id)
        args = {**REFUND, "amount": amount} if amount else None
        answer = "By hand." if what == "respond" else None
        opinion = Opinion(what, now.version, now.digest, args, answer, "Because.")
        decide(self._actor(name), now.id, opinion, undoable=True)

    def _propose(self, what: str, name: str, amount: str) -> None:
        now = Interrupt.objects.get(id=self.interrupt.id)
        opinion = Opinion("edit", now.version, now.digest, {**REFUND, "amount": amount})
        propose(self._actor(name), now.id, opinion)

    def _undo(self, what: str, name: str) -> None:
        now = Interrupt.objects.get(id=self.interrupt.id)
        undo(self._actor(name), now.id, now.version)

    def _override(self, what: str, name: str) -> None:
        now = Interrupt.objects.get(id=self.interrupt.id)
        override(self._actor(name), now.id, Opinion("approve", now.version, now.digest, reason="!"))

    def _stale(self, what: str) -> None:
        opinion = Opinion("approve", 1, self.interrupt.digest)
        decide(self._actor("approver3"), self.interrupt.id, opinion, undoable=True)

    def _later(self, what: str) -> None:
        """The time to take things back is over, and a worker comes by."""
        past = clock.now() - dt.timedelta(seconds=1)
        changed = Interrupt.objects.filter(id=self.interrupt.id, undo_until__gt=past)
        if changed.update(undo_until=past):
            Run.objects.filter(id=self.interrupt.run_id).update(available_at=past)
        self._work(what)

    def _expire(self, what: str) -> None:
        past = clock.now() - dt.timedelta(seconds=1)
        Interrupt.objects.filter(id=self.interrupt.id).update(expires_at=past)
        decisions.expire_due()

    def _cancel(self, what: str) -> None:
        run = Run.objects.get(id=self.interrupt.run_id)
        if run.status in ("interrupted", "pending"):
            cancel_run(as_actor(self.world.operator), run)

    def _claim(self, what: str, name: str) -> None:
        claims.claim(self._actor(name), self.interrupt.id)

    def _release(self, what: str, name: str) -> None:
        claims.release(self._actor(name), self.interrupt.id)

    def _delegate(self, what: str, name: str) -> None:
        """Somebody lets the viewer stand in; who has no right gives none."""
        other = "viewer"
        by, to = getattr(self.world, name), getattr(self.world, other)
        wish = delegation.Wish(ends_at=clock.now() + dt.timedelta(hours=1))
        delegation.delegate(self._actor(name), by, self.world.project, by, to, wish)
        if name in MAY:
            self.stand_ins.add(other)

    def _lose_role(self, what: str) -> None:
        self.world.approver2.memberships.all().delete()

    def _work(self, what: str) -> None:
        """What a worker does: claim if it is due, ask the guard, act."""
        if transitions.claim("worker", self.interrupt.run_id) is None:
            return
        now = Interrupt.objects.select_related("tool_call").get(id=self.interrupt.id)
        if now.tool_call.status == "approved" and guard().revoked(now.id) is None:
            assert now.undo_until is None or now.undo_until <= clock.now()
            self.effects.append(json.loads(now.tool_call.args_text))

    def check(self, before: Interrupt) -> None:
        now = Interrupt.objects.get(id=self.interrupt.id)
        votes = Decision.objects.filter(interrupt=now, action__in=VOTES, version=now.version)
        assert now.version >= before.version
        if before.status not in ("open", now.status):  # only taking back opens what was settled
            assert now.status == "open"
            assert now.version == before.version + 1
        allowed = {*MAY, "root", *self.stand_ins}
        assert {vote.actor_name for vote in Decision.objects.filter(interrupt=now)} <= allowed
        if now.status in ("approved", "edited"):
            grave = json.loads(now.tool_call.args_text)["amount"] == "120.00"
            people = {vote.seat_id for vote in votes if vote.action in ("approve", "edit")}
            seats = {getattr(self.world, name).pk for name in (*MAY, "root")}
            assert people <= seats  # who stands in fills the seat of somebody who may
            overridden = any(vote.overridden for vote in votes)
            assert overridden or len(people) >= (3 if grave else 2)
        if now.status in ("open", "expired", "withdrawn"):
            assert all(vote.action in ("approve", "edit") for vote in votes)
        assert len(self.effects) <= 1
        if self.effects:
            assert now.status in ("approved", "edited")
            assert json.loads(now.tool_call.args_text) == self.effects[0]

    def _actor(self, name: str) -> Any:
        return as_actor(getattr(self.world, name))


@pytest.mark.timeout(240)
def test_any_sequence_of_acts_has_one_outcome_by_those_who_may(world: World) -> None:
    world.approver3 = make_user("approver3", world.project, "approver")
    world.root = make_user("root")
    world.root.is_superuser = True
    world.root.save()
    world.policy(name="Two", required=2, requester_may=False)
    world.policy(name="Three", required=3, conditions={"amount": {"min": 100}})
    outcomes = set()

    @settings(
        max_examples=60,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
        database=None,
        phases=[Phase.generate],  # a dozen acts are read as they are
    )
    @given(st.lists(st.one_of(*ACTS), min_size=4, max_size=12))
    def play(sequence: list[tuple[str, ...]]) -> None:
        point = transaction.savepoint()
        interrupt = world.ask("issue_refund", REFUND, risk="high", ruled=True)
        one = Play(world, interrupt)
        try:
            for act in sequence:
                one.act(*act)
            now = Interrupt.objects.get(id=interrupt.id)
            outcomes.add((now.status, bool(one.effects)))
            settled = Decision.objects.filter(interrupt=now, action="undo").count() + 1
            assert len(audited("interrupt.overridden")) <= settled
        finally:
            transaction.savepoint_rollback(point)

    play()

    # The sequences went far enough to mean something.
    assert {status for status, _ in outcomes} >= {"open", "approved", "rejected", "withdrawn"}
    assert any(acted for _, acted in outcomes)


@pytest.mark.parametrize("undone_from", ["pending", "paused"])
def test_a_pause_in_the_time_to_take_back_neither_shortens_it_nor_ends_it(
    world: World, undone_from: str
) -> None:
    interrupt = world.ask(ruled=True)
    now = Opinion("approve", 1, interrupt.digest)
    decide(as_actor(world.approver), interrupt.id, now, undoable=True)
    until = Interrupt.objects.get(id=interrupt.id).undo_until
    run = Run.objects.get(id=interrupt.run_id)
    pause_run(as_actor(world.operator), run)
    if undone_from == "pending":
        resume_run(as_actor(world.operator), Run.objects.get(id=run.id))
        assert Run.objects.get(id=run.id).available_at >= until
        assert transitions.claim("eager", run.id) is None

    undo(as_actor(world.approver), interrupt.id, 1)

    assert Run.objects.get(id=run.id).status == "interrupted"
    assert Interrupt.objects.get(id=interrupt.id).status == "open"

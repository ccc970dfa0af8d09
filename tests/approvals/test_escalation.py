"""The ladder of a request that nobody decides, with the database's time moved by changing rows."""

from __future__ import annotations

import ast
import datetime as dt
import signal
import subprocess
import sys
from typing import Any

import pytest
from django.conf import settings

from approvals.deciding import changing
from approvals.deciding.commands import Opinion, decide
from approvals.deciding.guard import guard
from approvals.models import ApproverGroup, Assignment, EscalationStep, Notice
from approvals.people.rulings import ruling_on
from approvals.queries import for_me, waiting_for
from approvals.teamwork.escalation import escalate_due
from runtime_core import clock
from runtime_core.decisions import expire_due
from runtime_core.models import Event, Interrupt
from runtime_core.values import Actor
from tests.approvals.world import World, audited, make_user
from tests.runtime.world import together

LADDER = [
    {"after_minutes": 10, "action": "notify", "roles": ["approver"]},
    {"after_minutes": 20, "action": "widen", "people": ["viewer"], "groups": ["Night"]},
    {"after_minutes": 30, "action": "raise"},
]


def asked(world: World, minutes_ago: int = 0, ladder: list[dict[str, Any]] = LADDER) -> Interrupt:
    interrupt = world.ask()
    interrupt.terms = {"escalation": ladder}
    interrupt.save()
    wait(interrupt, minutes_ago)
    return interrupt


def wait(interrupt: Interrupt, minutes: int) -> None:
    """Let so many minutes have passed since it was asked."""
    at = clock.now() - dt.timedelta(minutes=minutes, seconds=1)
    Interrupt.objects.filter(id=interrupt.id).update(created_at=at)


def test_each_step_is_taken_once_when_its_time_has_come(world: World) -> None:
    boss = make_user("boss", world.project, "admin")
    night = ApproverGroup.objects.create(project=world.project, name="Night")
    night.members.add(world.operator)
    interrupt = asked(world, minutes_ago=5)
    assert escalate_due() == 0

    wait(interrupt, 10)
    assert [escalate_due(), escalate_due()] == [1, 0]
    assert not ruling_on(interrupt, world.viewer.pk).may
    told = Notice.objects.get(kind="escalated").audience
    assert told == sorted([world.approver.pk, world.approver2.pk])

    wait(interrupt, 20)
    assert [escalate_due(), escalate_due()] == [1, 0]
    for person in (world.viewer, world.operator):
        assert ruling_on(interrupt, person.pk).may
        assert interrupt in waiting_for(person)
    other = world.ask()
    assert not ruling_on(other, world.viewer.pk).may and other not in waiting_for(world.viewer)
    assert not ruling_on(interrupt, world.stranger.pk).visible

    wait(interrupt, 30)
    assert escalate_due() == 1
    assert [one.person for one in Assignment.objects.filter(interrupt=interrupt)] == [boss]
    assert interrupt in for_me(boss) and interrupt not in for_me(world.approver)
    steps = [one["how"] for one in audited("interrupt.escalated")]
    assert steps == ["notify", "widen", "raise"]
    said = Event.objects.filter(run=interrupt.run_id, type="progress").order_by("seq")
    assert [one.data["message"].split(",")[0] for one in said] == [
        "system reminded every approver", "system let Night", "system gave the request to every admin",
    ]  # fmt: skip

    world.policy(escalation=LADDER)  # it decides who may, as long as it applies
    changing.keep_current(interrupt)
    interrupt.refresh_from_db()
    opinion = Opinion("approve", interrupt.version, interrupt.digest)
    settled = decide(Actor(world.viewer.pk, "viewer"), interrupt.id, opinion)
    assert settled.status == "approved"


def test_what_is_decided_or_has_no_ladder_climbs_no_further(world: World) -> None:
    late = asked(world, minutes_ago=60)
    opinion = Opinion("approve", late.version, late.digest)
    decide(Actor(world.approver.pk, "approver"), late.id, opinion)
    wait(world.ask(), 600)
    odd = asked(world, minutes_ago=60, ladder=[])
    Interrupt.objects.filter(id=odd.id).update(terms={"escalation": "none"})

    assert escalate_due() == 0
    assert not EscalationStep.objects.exists()


@pytest.mark.race
@pytest.mark.django_db(transaction=True)
def test_two_sweepers_at_once_take_each_step_once(transactional_db: None) -> None:
    world = World()
    interrupts = [asked(world, minutes_ago=25) for _ in range(5)]

    taken = together(escalate_due, escalate_due, escalate_due)

    assert sum(taken) == 10
    assert EscalationStep.objects.count() == 10
    for interrupt in interrupts:
        entries = [
            one for one in audited("interrupt.escalated") if one["object"] == str(interrupt.id)
        ]
        assert sorted(one["step"] for one in entries) == [1, 2]
    assert Notice.objects.filter(kind="escalated").count() == 10


def test_what_a_policy_escalates_at_its_end_gets_admins_and_as_much_time_again_once(
    world: World,
) -> None:
    boss = make_user("boss", world.project, "admin")
    interrupt = asked(world)
    interrupt.terms = {"on_expiry": "escalate", "expires_minutes": 90}
    interrupt.save()

    Interrupt.objects.update(expires_at=clock.now() - dt.timedelta(minutes=1))
    assert [expire_due(), expire_due()] == [0, 0]

    interrupt.refresh_from_db()
    assert interrupt.status == "open"
    left = interrupt.expires_at - clock.now()
    assert dt.timedelta(minutes=89) < left <= dt.timedelta(minutes=90)
    assert [one.person for one in Assignment.objects.all()] == [boss]
    assert [one["how"] for one in audited("interrupt.escalated")] == ["raise"]

    Interrupt.objects.update(expires_at=clock.now() - dt.timedelta(minutes=1))
    assert expire_due() == 1
    interrupt.refresh_from_db()
    assert interrupt.status == "expired"


@pytest.mark.race
@pytest.mark.django_db(transaction=True)
def test_e2_fifty_that_nobody_decides_expire_once_each_whatever_restarts_meanwhile(
    transactional_db: None, process_env: dict[str, str]
) -> None:
    world = World()
    interrupts = [world.ask(expires_in=dt.timedelta(minutes=90)) for _ in range(50)]
    assert expire_due() == 0
    Interrupt.objects.update(expires_at=clock.now() - dt.timedelta(seconds=1))

    # A worker dies in the middle of its sweep, and what it had begun is gone with it.
    died = sweep_and_die(process_env)
    assert died == -signal.SIGKILL
    before = Interrupt.objects.filter(status="expired").count()
    assert 0 < before < 50
    for _ in range(3):
        swept = together(expire_due, expire_due)
        before += sum(swept)

    assert before == 50
    for interrupt in interrupts:
        interrupt.refresh_from_db()
        assert interrupt.status == "expired"
        told = Event.objects.filter(run=interrupt.run_id, data__interrupt=str(interrupt.id))
        assert [one.type for one in told] == ["progress"]
    objects = [one["object"] for one in audited("interrupt.expired")]
    assert sorted(objects) == sorted(str(one.id) for one in interrupts)
    assert Notice.objects.filter(kind="expired").count() == 50


def sweep_and_die(env: dict[str, str]) -> int:
    code = (
        "import django; django.setup()\n"
        "from runtime_core import decisions, failpoints\n"
        "failpoints.arm(9, 'kill', only='expire.inside')\n"
        "decisions.expire_due()"
    )
    return subprocess.run([sys.executable, "-c", code], env=env, cwd=settings.BASE_DIR).returncode


def test_e2_no_message_to_a_worker_holds_a_time() -> None:
    folders = ("runtime_core", "approvals", "traces", "config")
    for path in (one for name in folders for one in (settings.BASE_DIR / name).rglob("*.py")):
        tree = ast.parse(path.read_text())
        held = {
            word.arg
            for call in ast.walk(tree)
            if isinstance(call, ast.Call)
            for word in call.keywords
        }
        assert not held & {"countdown", "eta"}, path


def test_whom_the_ladder_of_an_earlier_policy_let_in_decides_nothing_under_another(
    world: World,
) -> None:
    ladder = [{"after_minutes": 5, "action": "widen", "people": ["viewer"]}]
    world.policy(roles=["approver"], escalation=ladder)
    approved, open_one = world.ask(ruled=True), world.ask(ruled=True)
    wait(approved, 9)
    wait(open_one, 9)
    assert escalate_due() == 2
    viewer = Actor(world.viewer.pk, "viewer")
    decide(viewer, approved.id, Opinion("approve", 1, approved.digest))
    assert guard().revoked(approved.id) is None

    world.policy(name="Admins alone", roles=["admin"], tool="write_file")
    changing.keep_current(open_one)

    assert "policy changed" in str(guard().revoked(approved.id))
    now = Interrupt.objects.get(id=open_one.id)
    assert not ruling_on(now, world.viewer.pk).may and now not in waiting_for(world.viewer)
    world.policy(
        name="With a ladder", tool="write_file", roles=["admin"], required=2, escalation=ladder
    )
    changing.keep_current(now)
    assert escalate_due() == 1
    assert ruling_on(Interrupt.objects.get(id=now.id), world.viewer.pk).may

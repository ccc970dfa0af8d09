"""The demo's agents from the first step to the last, with each answer that a person may give."""

from __future__ import annotations

import subprocess
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings

from evals.shop import demo_orders
from evals.shop.models import Refund
from runtime_core import commands
from runtime_core.models import Run
from runtime_core.tools import workspace
from tests.runtime.world import (
    World,
    actor,
    calls,
    decide_on,
    drive,
    make_world,
    open_interrupts,
    texts,
)

pytestmark = pytest.mark.django_db(transaction=True)

_BROKEN = "def slugify(title, separator='-'):\n    return title\n"


@pytest.fixture
def world() -> World:
    """A project with the demo's agents and orders."""
    demo_orders.seed()
    made = make_world()
    listed = yaml.safe_load((Path(settings.BASE_DIR) / "evals" / "agents.yaml").read_text())
    for definition in listed["agents"]:
        mine = {key: value for key, value in definition.items() if key != "project"}
        commands.apply_agent(actor(made.alice), made.project, mine)
    return made


def start(world: World, agent: str, text: str) -> Run:
    run = commands.start_run(actor(world.alice), project=world.project, agent=agent, input=text)
    return drive(run)


def answer(world: World, run: Run, action: str, **more: Any) -> Run:
    [interrupt] = open_interrupts(run)
    decide_on(interrupt, world.bob, action, **more)
    return drive(run)


def said(run: Run) -> str:
    return list(texts(run).values())[-1]


def commits(run: Run) -> list[str]:
    done = subprocess.run(
        ["git", "log", "--format=%s"],
        cwd=workspace.path_of(run.id), capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.splitlines()


def tools_of(run: Run) -> list[str]:
    return [f"{c.tool}:{c.status}" for c in calls(run)]


def test_an_approved_change_is_tested_and_committed(world: World) -> None:
    started = time.monotonic()
    run = start(world, "code-fixer", "Please fix the failing tests.")
    assert run.status == "interrupted", run.error
    assert (open_interrupts(run)[0].tool_call.tool) == "write_file"
    run = answer(world, run, "approve")
    assert time.monotonic() - started < 25
    assert run.status == "completed"
    assert said(run).startswith("Done.")
    assert commits(run) == ["Make slugs of plain words only", "The workspace as it was given"]
    assert tools_of(run) == [
        "list_files:succeeded", "read_file:succeeded", "read_file:succeeded",
        "read_file:succeeded", "run_command:succeeded", "write_file:succeeded",
        "run_command:succeeded", "git_commit:succeeded",
    ]  # fmt: skip


def test_a_rejected_change_leaves_everything_as_it_was(world: World) -> None:
    run = start(world, "code-fixer", "Please fix the failing tests.")
    run = answer(world, run, "reject", reason="Not like this.")
    assert run.status == "completed"
    assert said(run).startswith("Understood, I'm sorry")
    assert len(commits(run)) == 1


def _edited(world: World, run: Run) -> Run:
    args = {"path": "slugify/text.py", "content": _BROKEN}
    return answer(world, run, "edit", args=args)


def test_a_failing_edit_really_fails_and_is_mended_on_approval(world: World) -> None:
    run = _edited(world, start(world, "code-fixer", "Please fix the failing tests."))
    assert run.status == "interrupted"
    assert said(run).startswith("The tests still fail")
    run = answer(world, run, "approve")
    assert run.status == "completed"
    assert said(run).startswith("Done.")
    assert len(commits(run)) == 2


def test_a_second_failing_edit_ends_without_a_commit(world: World) -> None:
    run = _edited(world, start(world, "code-fixer", "Please fix the failing tests."))
    run = _edited(world, run)
    assert run.status == "completed"
    assert said(run).startswith("The tests fail again")
    assert len(commits(run)) == 1


def test_a_refund_is_issued_once_it_is_approved(world: World) -> None:
    run = start(world, "refund-desk", "Order A-1001 arrived broken, please refund it.")
    assert run.status == "interrupted", run.error
    assert not Refund.objects.exists()
    run = answer(world, run, "approve")
    assert run.status == "completed"
    assert said(run).startswith("The refund for order A-1001 is on its way")
    assert Refund.objects.get().amount == Decimal("24.90")
    again = start(world, "refund-desk", "Refund A-1001 please.")
    assert again.status == "completed"
    assert said(again).startswith("Order A-1001 has no amount left")


@pytest.mark.parametrize("order", ["A-1002", "A-1003", "A-1004"])
def test_each_order_has_its_refund(world: World, order: str) -> None:
    run = start(world, "refund-desk", f"About {order}: I would like my money back.")
    assert answer(world, run, "approve").status == "completed"
    assert Refund.objects.get().order.number == order


def test_a_rejected_refund_pays_nothing(world: World) -> None:
    run = start(world, "refund-desk", "Order A-1001 arrived broken.")
    run = answer(world, run, "reject", reason="It was repaired.")
    assert said(run).startswith("Understood. I have not refunded order A-1001")
    assert not Refund.objects.exists()


def test_a_refund_of_too_much_is_refused_by_the_shop(world: World) -> None:
    run = start(world, "refund-desk", "Order A-1001 arrived broken.")
    args = {"order_id": "A-1001", "amount": "500.00", "reason": "Generous"}
    run = answer(world, run, "edit", args=args)
    assert run.status == "completed"
    assert said(run).startswith("The shop did not accept this refund")
    assert not Refund.objects.exists()


@pytest.mark.parametrize("text", ["Refund order B-4711", "I want my money back"])
def test_an_order_that_is_not_there_is_asked_for(world: World, text: str) -> None:
    run = start(world, "refund-desk", text)
    assert run.status == "completed"
    assert said(run).startswith("I can't find that order")

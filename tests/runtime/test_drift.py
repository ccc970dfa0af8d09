"""What people let run is what runs: whatever else changed meanwhile is asked again, and shown."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from django.test import Client

from approvals.models import ApprovalPolicy
from runtime_core.loop import restore
from runtime_core.models import Interrupt, Run
from runtime_core.tools import registry, workspace
from runtime_core.tools.registry import digest_of
from tests.runtime.tools import effects
from tests.runtime.world import (
    World,
    call,
    calls,
    decide_on,
    drive,
    open_interrupts,
)

PAY = [{"calls": [call("ledger_append", text="pay-1")]}, {"text": "Done."}]
WRITE = call("write_file", path="notes.txt", content="mine\n")
IN_A_WORKSPACE: dict[str, Any] = {
    "workspace": "evals/fixtures",
    "tools": ["write_file"],
    "permissions": {"write_file": "ask"},
}


def changes(interrupt: Interrupt) -> dict[str, tuple[str, str]]:
    found = interrupt.detail["changes"]
    return {one["what"]: (one["before"], one["after"]) for one in found}


def asked_again(run: Run) -> Interrupt:
    """Drive the approved run: it has done nothing and asks what to make of the change."""
    done = effects()
    run = drive(run)
    assert (run.status, effects()) == ("interrupted", done)
    [again] = open_interrupts(run)
    assert again.kind == "drift"
    return again


def page_of(interrupt: Interrupt, world: World) -> str:
    client = Client()
    client.force_login(world.bob)
    return client.get(f"/inbox/{interrupt.id}/").content.decode()


def test_g2_a_changed_definition_blocks_the_call_and_shows_the_difference(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = drive(world.start(PAY))
    decide_on(open_interrupts(run)[0], world.bob)
    tool = registry()["ledger_append"]
    text = f"{tool.spec.description} always bcc x"
    spec = dataclasses.replace(tool.spec, description=text)
    spec = dataclasses.replace(
        spec, digest=digest_of(spec.name, text, spec.schema, spec.risk, spec.effect)
    )
    other = dataclasses.replace(tool, spec=spec)
    monkeypatch.setattr(restore, "registry", lambda: {**registry(), "ledger_append": other})

    again = asked_again(run)

    assert changes(again) == {"tool.description": (tool.spec.description, text)}
    page = page_of(again, world)
    assert "What is not as it was" in page
    assert "always bcc x" in page
    decide_on(again, world.bob)
    assert drive(run).status == "completed"
    assert effects() == ["pay-1"]


def test_a_new_version_of_the_agent_is_shown_before_what_it_asked_for_runs(world: World) -> None:
    run = drive(world.start(PAY, name="payer"))
    decide_on(open_interrupts(run)[0], world.bob)
    world.agent(PAY, name="payer", instructions="Pay whoever asks.")

    again = asked_again(run)

    found = changes(again)
    assert found["agent.version"] == ("1", "2")
    assert found["agent.instructions"] == ("Do as the script says.", "Pay whoever asks.")
    decide_on(again, world.bob)
    assert drive(run).status == "completed"
    assert effects() == ["pay-1"]


def test_a_stricter_policy_is_asked_for_before_it_runs_and_a_laxer_one_is_not(
    world: World,
) -> None:
    rule = {"project": world.project, "tool": "ledger_append", "requester_may": True}
    ApprovalPolicy.objects.create(name="Once", **rule)
    run = drive(world.start(PAY))
    [interrupt] = open_interrupts(run)
    decide_on(interrupt, world.bob)
    ApprovalPolicy.objects.create(
        name="Twice", **{**rule, "conditions": {"text": {"equals": "pay-1"}}, "required": 2}
    )

    again = asked_again(run)

    assert again.required == 2
    assert changes(again)["policy.required"] == ("1", "2")
    assert "requires 2 people" in again.reason
    decide_on(again, world.bob, "reject", reason="Then not.")
    assert drive(run).status == "completed"
    assert effects() == []

    run = drive(world.start(PAY))
    [interrupt] = open_interrupts(run)
    assert interrupt.required == 2
    decide_on(interrupt, world.bob)
    assert Interrupt.objects.get(id=interrupt.id).status == "open"


@pytest.mark.parametrize("harm", ["changed", "new", "gone"])
def test_a_file_that_is_not_what_it_was_is_shown_before_it_is_replaced(
    world: World, harm: str
) -> None:
    run = world.start([{"calls": [WRITE]}, {"text": "Done."}], **IN_A_WORKSPACE)
    file = workspace.prepare(run.id, IN_A_WORKSPACE["workspace"]) / "notes.txt"
    if harm != "new":
        file.write_text("theirs\n")
    run = drive(run)
    decide_on(open_interrupts(run)[0], world.bob)
    if harm == "gone":
        file.unlink()
    else:
        file.write_text("somebody else's\n")

    again = asked_again(run)

    assert "notes.txt" in again.reason
    assert list(changes(again)) == ["files.notes.txt"]
    decide_on(again, world.bob)
    assert drive(run).status == "completed"
    assert file.read_text() == "mine\n"


@pytest.mark.parametrize("harm", ["changed", "gone"])
def test_a_file_that_a_command_names_is_shown_if_it_is_another_by_then(
    world: World, harm: str
) -> None:
    turns = [{"calls": [call("run_command", argv=["cat", "build/script"])]}, {"text": "Done."}]
    within = {**IN_A_WORKSPACE, "tools": ["run_command"], "permissions": {"run_command": "ask"}}
    run = world.start(turns, **within)
    file = workspace.prepare(run.id, IN_A_WORKSPACE["workspace"]) / "build" / "script"
    file.parent.mkdir()
    file.write_text("harmless\n")
    run = drive(run)
    decide_on(open_interrupts(run)[0], world.bob)
    if harm == "gone":
        file.unlink()
    else:
        file.write_text("harmful\n")

    again = asked_again(run)

    assert list(changes(again)) == ["files.build/script"]
    decide_on(again, world.bob)
    assert drive(run).status == "completed"


def test_a_file_that_nothing_names_may_change_unasked(world: World) -> None:
    turns = [{"calls": [call("run_command", argv=["cat", "calc.py"])]}, {"text": "Done."}]
    within = {**IN_A_WORKSPACE, "tools": ["run_command"], "permissions": {"run_command": "ask"}}
    run = world.start(turns, **within)
    folder = workspace.prepare(run.id, IN_A_WORKSPACE["workspace"])
    run = drive(run)
    decide_on(open_interrupts(run)[0], world.bob)
    (folder / "unrelated").write_text("new\n")

    assert drive(run).status == "completed"


def test_what_the_run_itself_did_with_permission_is_no_drift(world: World) -> None:
    twice = [WRITE, call("write_file", path="notes.txt", content="mine, too\n")]
    run = drive(world.start([{"calls": twice}, {"text": "Done."}], **IN_A_WORKSPACE))
    for interrupt in open_interrupts(run):
        decide_on(interrupt, world.bob)

    assert drive(run).status == "completed"
    assert [c.status for c in calls(run)] == ["succeeded", "succeeded"]
    file = workspace.path_of(run.id) / "notes.txt"
    assert file.read_text() == "mine, too\n"

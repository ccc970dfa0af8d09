"""The command line: agents, tools and runs; a user's mistake is one line."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from runtime_core.errors import InvalidInput, NotAllowed, NotFound
from runtime_core.models import Agent, Run
from tests.pages.world import World
from traces.models import AuditEntry


@pytest.fixture
def world(db: None) -> World:
    return World()


def manage(*words: str) -> str:
    out = io.StringIO()
    call_command(*words, stdout=out, stderr=io.StringIO())
    return out.getvalue()


def test_agents_apply_makes_versions_only_of_what_changed(world: World, tmp_path: Path) -> None:
    file = tmp_path / "agents.yaml"
    file.write_text("agents:\n- {name: helper, project: demo, instructions: Help., tools: []}\n")

    first, again = manage("agents", "apply", str(file)), manage("agents", "apply", str(file))
    file.write_text(file.read_text().replace("Help.", "Help well."))
    changed = manage("agents", "apply", str(file))

    assert first == "demo/helper: new version 1\n"
    assert again == "demo/helper: unchanged, version 1\n"
    assert changed == "demo/helper: new version 2\n"
    assert AuditEntry.objects.filter(action="agent.applied").count() == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("agents: [", "no valid YAML"),
        ("- a", "must be `agents:`"),
        ("agents: []", "no agent"),
        ("agents: [{name: x, project: nowhere}]", "no project 'nowhere'"),
        ("agents: [{name: x, project: demo, tools: [fly]}]", "no tool 'fly'"),
        ("agents: [{name: x, project: demo, colour: red}]", "colour: unknown field"),
        ("agents: [{name: good, project: demo}, {name: x, project: demo, tools: 5}]", "tools"),
    ],
)
def test_agents_apply_takes_all_of_a_file_or_nothing(
    world: World, tmp_path: Path, text: str, says: str
) -> None:
    file = tmp_path / "agents.yaml"
    file.write_text(text)

    with pytest.raises((CommandError, InvalidInput), match=re.escape(says)):
        manage("agents", "apply", str(file))

    assert not Agent.objects.filter(name="good").exists()


def test_agents_apply_names_a_file_that_is_not_there(world: World) -> None:
    with pytest.raises(CommandError, match="No such file"):
        manage("agents", "apply", "/nowhere/agents.yaml")


def test_tools_list_names_risk_and_effect() -> None:
    assert re.search(r"^write_file +medium +idempotent +\d+ s  \w", manage("tools", "list"), re.M)


def test_runs_start_list_show_cancel(world: World) -> None:
    run_id = manage("runs", "start", "--agent", "code-fixer", "--input", "Mend it", "--user", "ana",
                    "--max-steps", "5").strip()  # fmt: skip

    run = Run.objects.get()
    assert (str(run.id), run.max_steps, run.created_by) == (run_id, 5, world.operator)
    assert run_id in manage("runs", "list")
    assert run_id not in manage("runs", "list", "--status", "failed")
    assert manage("runs", "list", "--user", "cy") == ""
    assert "status     pending" in manage("runs", "show", run_id)
    assert manage("runs", "cancel", run_id, "--user", "ana") == "cancelled\n"


def test_runs_start_follows_to_the_end(world: World) -> None:
    run = world.run("completed", output="Done.")
    world.event(run, "run_status", {"from": "pending", "to": "running", "cause": "claim"})
    world.event(run, "done", {"status": "completed", "output": "Done."})

    lines = manage("runs", "show", str(run.id), "--follow").splitlines()

    assert [line.split()[2] for line in lines] == ["run_status", "done"]


def test_following_stops_where_a_person_must_act(world: World) -> None:
    run = world.run("interrupted")
    one = world.ask(run)
    err = io.StringIO()

    call_command("runs", "show", str(run.id), "--follow", stdout=io.StringIO(), stderr=err)

    assert str(one.id) in err.getvalue()


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["runs", "start", "--agent", "nobody", "--input", "x"], NotFound),
        (["runs", "start", "--agent", "code-fixer", "--input", " "], InvalidInput),
        (["runs", "start", "--agent", "code-fixer", "--input", "x", "--user", "bo"], NotAllowed),
        (["runs", "start", "--agent", "code-fixer", "--input", "x", "--user", "cy"], NotFound),
        (["runs", "start", "--agent", "code-fixer", "--input", "x", "--user", "x"], CommandError),
        (["runs", "show", "x"], InvalidInput),
        (["runs", "show", "0190b5a0-0000-7000-8000-000000000000"], NotFound),
        (["runs", "list", "--project", "nowhere"], CommandError),
    ],
)
def test_mistakes_are_told_apart(world: World, words: list[str], error: type[Exception]) -> None:
    with pytest.raises(error):
        manage(*words)

    assert not Run.objects.exists()


def test_a_mistake_is_one_line_on_stderr_and_status_1(process_env: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "runs", "show", "x"],
        env=process_env, capture_output=True, text=True, timeout=50, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.strip().splitlines()) == 1
    assert "Traceback" not in done.stderr

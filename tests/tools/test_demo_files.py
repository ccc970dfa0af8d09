"""What the demo ships fits together: agents, scripts, tools and the repository to mend."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings

from runtime_core.gateway.script import load_script
from runtime_core.tools import ToolContext, registry, runner, workspace
from runtime_core.tools.permission import decide, parse_permissions
from runtime_core.tools.schema import parse
from runtime_core.values import Verdict

EVALS = Path(settings.BASE_DIR) / "evals"
AGENTS: dict[str, dict[str, Any]] = {
    agent["name"]: agent for agent in yaml.safe_load((EVALS / "agents.yaml").read_text())["agents"]
}


@pytest.mark.parametrize("name", ["code-fixer", "refund-desk"])
def test_every_call_of_a_script_fits_its_tool(name: str) -> None:
    agent = AGENTS[name]
    assert set(agent["tools"]) <= set(registry())
    assert set(agent["permissions"]) <= set(agent["tools"])
    for turn in load_script(Path(settings.BASE_DIR) / agent["script"]).turns:
        for call in turn.calls:
            assert call.tool in agent["tools"]
            parse(registry()[call.tool], json.dumps(call.args).replace("{{order}}", "A-1001"))


@pytest.mark.parametrize(
    ("agent", "tool", "args", "verdict"),
    [
        ("code-fixer", "run_command", {"argv": ["python3", "-m", "unittest"]}, Verdict.ALLOW),
        ("code-fixer", "run_command", {"argv": ["git", "diff"]}, Verdict.ALLOW),
        ("code-fixer", "run_command", {"argv": ["git", "diff", "--output=a.py"]}, Verdict.ASK),
        ("code-fixer", "run_command", {"argv": ["git", "log", "--output", "a.py"]}, Verdict.ASK),
        ("code-fixer", "run_command", {"argv": ["rm", "-rf", "."]}, Verdict.ASK),
        ("code-fixer", "write_file", {"path": "x", "content": ""}, Verdict.ASK),
        ("code-fixer", "git_commit", {"message": "x"}, Verdict.ALLOW),
        ("refund-desk", "lookup_order", {"order_id": "A-1001"}, Verdict.ALLOW),
        ("refund-desk", "issue_refund", {"order_id": "A-1001", "amount": 1}, Verdict.ASK),
    ],
)
def test_what_the_demo_agents_may_do(
    agent: str, tool: str, args: dict[str, Any], verdict: Verdict
) -> None:
    rules = parse_permissions(AGENTS[agent]["permissions"])
    assert decide(rules, registry()[tool].spec, args).verdict is verdict


def test_the_scripted_change_really_mends_the_tests(
    make_ctx: Callable[..., ToolContext], tmp_path: Path, settings: Any
) -> None:
    settings.DATA_DIR = tmp_path
    ctx = make_ctx(
        workspace_path=workspace.prepare(uuid.UUID(int=1), AGENTS["code-fixer"]["workspace"])
    )
    script = load_script(EVALS / "scripts" / "code-fixer.yaml")
    fix = next(call for turn in script.turns for call in turn.calls if call.tool == "write_file")

    def tests() -> dict[str, Any]:
        outcome = runner.run(
            registry()["run_command"], {"argv": ["python3", "-m", "unittest"]}, ctx
        )
        return dict(outcome.result)

    before = tests()
    assert before["exit_code"] == 1 and "FAILED (failures=5)" in before["output"]
    assert runner.run(registry()["write_file"], fix.args, ctx).status == "succeeded"
    after = tests()
    assert after["exit_code"] == 0 and after["output"].endswith("OK\n")
    committed = runner.run(registry()["git_commit"], {"message": "Mend"}, ctx)
    assert committed.result["files"] == ["slugify/text.py"]

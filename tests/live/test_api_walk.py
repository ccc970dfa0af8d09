"""The commands of docs/api.md, run as they stand against web and worker."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from django.conf import settings

from evals.shop.demo_orders import seed
from runtime_core import commands
from runtime_core.models import ApiToken, Run, ToolCall
from runtime_core.values import Actor
from tests.api.room import Room
from tests.conftest import environment
from tests.live.web import Web
from tests.runtime.workers import Worker


@pytest.fixture
def worker(transactional_db: None) -> Iterator[Worker]:
    """A Celery worker on the test database."""
    worker = Worker(environment()).start()
    yield worker
    worker.stop()


@pytest.mark.timeout(150)
def test_the_walk_of_the_docs_is_true(
    web: Web, room: Room, token: str, worker: Worker, tmp_path: Path
) -> None:
    seed()
    agents = yaml.safe_load((settings.BASE_DIR / "evals/agents.yaml").read_text())["agents"]
    refund_desk = next(agent for agent in agents if agent["name"] == "refund-desk")
    commands.apply_agent(Actor(room.ana.pk, room.ana.username), room.project, refund_desk)
    text = (settings.BASE_DIR / "docs/api.md").read_text()
    script = "\n".join(re.findall(r"```bash\n(.*?)```", text, re.DOTALL))

    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=tmp_path,
        env={
            "PATH": os.environ["PATH"],
            "INTERLOCK": web.origin,
            "OPERATOR": token,
            "APPROVER": ApiToken.issue(room.bo)[1],
        },
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "event: done" in done.stdout
    assert "completed" in done.stdout
    assert Run.objects.get().status == "completed"
    assert ToolCall.objects.get(tool="issue_refund").status == "succeeded"

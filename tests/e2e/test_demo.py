"""`make demo`: the main job from start to end without a person, and nothing left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from tests.runtime.workers import processes_with
from tests.runtime.world import wait_until


@pytest.mark.timeout(240)
def test_the_demo_does_the_main_job_and_leaves_nothing(tmp_path: Path) -> None:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("INTERLOCK_", "DJANGO_"))}
    env["INTERLOCK_DATA_DIR"] = str(tmp_path / "data")

    done = subprocess.run(
        [sys.executable, "manage.py", "demo", "--auto"],
        cwd=settings.BASE_DIR,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )

    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr
    assert "asks a person: write_file" in done.stdout
    assert "approver decided: approve" in done.stdout
    assert "completed: " in done.stdout
    assert "/traces/" in done.stdout
    wait_until(lambda: not processes_with(str(tmp_path)), 10, "nothing is left")

"""The page of the audit can be narrowed to everything that is ever recorded."""

from __future__ import annotations

import re
from pathlib import Path

from django.conf import settings

from traces.views.audit import ACTIONS

ROOMS = ("approvals", "config", "runtime_core", "traces")
ACTION = re.compile(
    r'"((?:agent|auth|access|data|decision|delegation|export|grant|hold|interrupt|notification|permission|personal'
    r'|policy|queue|quota|redaction|retention|run|token|vault)\.[a-z_]+)"'
)
# Log lines, and the name of a group of statements.
NOT_AUDITED = {"run.fenced", "run.database", "run.broken", "run.broken_unsaved", "run.spans"}


def test_every_action_that_the_code_names_can_be_chosen() -> None:
    files = [path for room in ROOMS for path in (Path(settings.BASE_DIR) / room).rglob("*.py")]
    named = {name for path in files for name in ACTION.findall(path.read_text())}

    assert named - NOT_AUDITED - set(ACTIONS) == set()
    assert len(named) > 40

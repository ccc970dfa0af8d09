"""What the database itself refuses of runs, steps and events, whoever writes."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, connection, transaction

from tests.runtime.world import World, call, drive

TURNS = [{"text": "Look.", "calls": [call("look", at="here")]}, {"text": "Seen."}]


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("UPDATE run SET status = 'odd'", "run_status_fits"),
        ("UPDATE run SET status = ''", "run_status_fits"),
        ("UPDATE run SET status = 'completed', ended_at = NULL", "run_status_fits"),
        ("UPDATE run SET status = 'running', ended_at = now()", "run_status_fits"),
        ("UPDATE run SET compensation = 'odd'", "run_compensation_known"),
        ("UPDATE run SET steps = -1", "run_counts"),
        ("UPDATE run SET claims_without_progress = -1", "run_counts"),
        ("UPDATE run SET deadline_s = -1", "run_counts"),
        ("UPDATE step SET kind = 'odd'", "step_kind_known"),
        ("UPDATE step SET status = 'odd'", "step_status_known"),
        ("UPDATE step SET attempt = -1", "step_counts"),
        ("UPDATE tool_call SET status = 'odd'", "tool_call_status_known"),
        ("UPDATE checkpoint SET messages = -1", "checkpoint_counts"),
        ("UPDATE event SET type = 'odd'", "event_type_known"),
        ("UPDATE event SET seq = 0 WHERE seq = 1", "event_seq_from_one"),
    ],
)
def test_the_database_refuses(world: World, statement: str, name: str) -> None:
    drive(world.start(TURNS))

    with pytest.raises(IntegrityError, match=name), transaction.atomic():
        connection.cursor().execute(statement)

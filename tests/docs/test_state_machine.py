"""The page about the run's states says what the table of moves says."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

from runtime_core import state_diagram
from runtime_core.states import ENDED, RUN_MOVES, RunStatus


def test_the_page_is_generated_from_the_table() -> None:
    assert (Path(settings.BASE_DIR) / state_diagram.PAGE).read_text() == state_diagram.page()


def test_every_status_can_be_reached_and_left_or_is_an_end() -> None:
    for status in RunStatus:
        reached = status is RunStatus.PENDING or any(target is status for _, target in RUN_MOVES)
        left = any(source is status for source, _ in RUN_MOVES)
        assert reached
        assert left or status in ENDED


def test_what_was_cancelled_or_completed_is_never_left() -> None:
    final = {RunStatus.CANCELLED, RunStatus.COMPLETED}
    assert not [source for source, _ in RUN_MOVES if source in final]

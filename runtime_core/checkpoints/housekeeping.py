"""Lets go of checkpoints that nobody will go back to: each run keeps its last ones, its key nodes, and what is pinned.

Key nodes are those at an interrupt, a decision, a pause and an end, and every so many steps one. Nothing refers to a
checkpoint but by looking, so each sweep may stop anywhere and be repeated.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator

from django.db import connection
from django.db.models import Q
from django.db.models.functions import Now

from runtime_core.limits import limits
from runtime_core.models import Run
from runtime_core.states import KEY_REASONS, CheckpointReason
from runtime_core.transactions import one_commit

RUNS_A_BATCH = 50
# How far back a sweep looks for runs that have ended: far longer than from one sweep to the next.
LOOKS_BACK = dt.timedelta(hours=1)

_KEPT = sorted(reason.value for reason in KEY_REASONS)
_OF_GRAPHS = sorted((CheckpointReason.NODE.value, CheckpointReason.STATE.value))

# A graph's state is put together from its last whole on; what is before that is as ordinary as the rest.
_SWEEP = """
WITH counted AS (
    SELECT c.id, row_number() OVER (PARTITION BY c.run_id ORDER BY c.epoch DESC, c.id DESC) AS nth
    FROM checkpoint c
    WHERE c.run_id = ANY(%(runs)s) AND NOT c.pinned AND c.step %% %(every)s <> 0
      AND (c.reason <> ALL(%(kept)s)
           OR c.reason = ANY(%(of_graphs)s) AND c.step < (
               SELECT max(whole.step) FROM checkpoint whole
               WHERE whole.run_id = c.run_id AND whole.reason = 'state'))
)
DELETE FROM checkpoint USING counted
WHERE checkpoint.id = counted.id AND counted.nth > %(keep)s AND NOT checkpoint.pinned
"""


def sweep(*, everything: bool = False) -> int:
    """Delete what need not be kept, of runs that go on or ended lately, or of all; how many rows, in short batches."""
    return sum(_sweep(runs) for runs in _long_runs(everything))


def _long_runs(everything: bool) -> Iterator[list[uuid.UUID]]:
    """Runs that have more steps than checkpoints are kept, some at a time."""
    runs = Run.objects.filter(steps__gt=limits().checkpoints_kept)
    if not everything:
        runs = runs.filter(Q(ended_at__isnull=True) | Q(ended_at__gt=Now() - LOOKS_BACK))
    after: uuid.UUID | None = None
    while True:
        page = runs.filter(id__gt=after) if after else runs
        ids = list(page.order_by("id").values_list("id", flat=True)[:RUNS_A_BATCH])
        if not ids:
            return
        yield ids
        after = ids[-1]


def _sweep(runs: list[uuid.UUID]) -> int:
    with one_commit("tidy"), connection.cursor() as cursor:
        cursor.execute(
            _SWEEP,
            {
                "runs": runs,
                "keep": limits().checkpoints_kept,
                "every": limits().checkpoint_every_steps,
                "kept": _KEPT,
                "of_graphs": _OF_GRAPHS,
            },
        )
        return int(cursor.rowcount)

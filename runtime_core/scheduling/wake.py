"""Wakes a worker for a run: a hint over the broker, without authority; what it loses, the dispatch tick finds.

Hints stand in a sorted set, each run once, from which a worker with a free slot takes one as soon as it is there.
"""

from __future__ import annotations

import uuid

from django.db import transaction

from runtime_core import broker

DUE = "interlock:due"
# What nobody has taken by then, the tick hints at again.
KEPT_SECONDS = 30


def wake_run(run_id: uuid.UUID) -> None:
    """Hint, after the surrounding transaction has committed, that this run is due."""
    transaction.on_commit(lambda: send(run_id))


def send(run_id: uuid.UUID) -> bool:
    """Send the hint now; False if the broker cannot be reached."""
    # All have the same score: ids sort by their time, so the oldest run is first.
    hint = ("ZADD", DUE, 0, str(run_id))
    return broker.tell("wake", [hint, ("EXPIRE", DUE, KEPT_SECONDS)], always=True)

"""Wakes a worker for a run: a hint over the broker, without authority; what it loses, the dispatch tick finds."""

from __future__ import annotations

import uuid

import structlog
from django.db import transaction

from runtime_core.transactions import outside

log = structlog.get_logger(__name__)

ADVANCE = "runtime_core.advance"


def wake_run(run_id: uuid.UUID) -> None:
    """Hint, after the surrounding transaction has committed, that this run is due."""
    transaction.on_commit(lambda: send(run_id))


def send(run_id: uuid.UUID) -> bool:
    """Send the hint now; False if the broker cannot be reached."""
    from celery import current_app

    try:
        with outside("wake"):
            current_app.send_task(
                ADVANCE, args=[str(run_id)], ignore_result=True, retry=False, expires=30
            )
    except Exception as error:  # noqa: BLE001 - what was committed is committed; the tick finds the run
        log.warning("wake.lost", run=str(run_id), error=type(error).__name__)
        return False
    return True

"""The background work of this side, as Celery ticks; arguments are ids only, results are none."""

from __future__ import annotations

from celery import shared_task

from traces.audit.sealer import seal


@shared_task(name="traces.seal")
def seal_audit() -> None:
    """Give the newest audit entries their place in the chain."""
    seal()

"""The background work of this side, as Celery ticks; arguments are ids only, results are none."""

from __future__ import annotations

from celery import shared_task

from traces.audit.sealer import seal
from traces.deletion.purge import purge_due
from traces.exports.job import work as write_exports
from traces.retention.sweep import sweep

SWEEP_SECONDS = 120.0


@shared_task(name="traces.seal")
def seal_audit() -> None:
    """Give the newest audit entries their place in the chain."""
    seal()


@shared_task(name="traces.retain")
def let_go() -> None:
    """Let go of what has been kept long enough; what does not fit into the time is for the next tick."""
    sweep(False, lambda *_: None, seconds=SWEEP_SECONDS)


@shared_task(name="traces.purge")
def purge() -> None:
    """Delete the rows of what was asked to be deleted."""
    purge_due()


@shared_task(name="traces.export")
def export() -> None:
    """Write the exports that were asked for, and remove the files whose time is over."""
    write_exports()

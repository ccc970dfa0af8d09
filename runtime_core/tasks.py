"""Celery's shells around the scheduling room: ids in, nothing out, no authority."""

from __future__ import annotations

import importlib
import os
import secrets
import socket
import uuid
from typing import Any

from celery import shared_task
from celery.signals import worker_init, worker_shutdown, worker_shutting_down

from runtime_core import decisions, ports
from runtime_core.checkpoints import housekeeping
from runtime_core.loop.control import watch
from runtime_core.scheduling import reconcile as scheduling
from runtime_core.scheduling.slots import slots
from runtime_core.tools import registry

# Never the name of a process that was: a restarted container has the same host name and number.
WORKER = f"{socket.gethostname()[:80]}:{secrets.token_hex(3)}:{os.getpid()}"


@shared_task(name="runtime_core.advance")
def advance(run_id: str) -> None:
    """Offer the run to a free slot. Hints come over `scheduling.wake`; by this door, those of older processes."""
    try:
        hinted = uuid.UUID(run_id)
    except ValueError:
        return
    slots(WORKER).offer(hinted)


@shared_task(name="runtime_core.dispatch")
def dispatch() -> None:
    """Hint at due runs that no worker has taken."""
    scheduling.dispatch()


@shared_task(name="runtime_core.reconcile")
def reconcile() -> None:
    """Re-queue what lost workers held, end what is past its deadline."""
    scheduling.reconcile()


@shared_task(name="runtime_core.expire")
def expire() -> None:
    """Reject what nobody decided in time."""
    decisions.expire_due()


@shared_task(name="runtime_core.tidy")
def tidy() -> None:
    """Let go of checkpoints that nobody will go back to."""
    housekeeping.sweep()


@worker_init.connect
def load_all(**_: Any) -> None:
    """Load now, on one thread, what runs need: later it would hold up every stream of the process for seconds."""
    importlib.import_module("runtime_core.gateway.provided")
    registry()
    for port in (
        ports.redactor,
        ports.audit,
        ports.spans,
        ports.decision_guard,
        ports.terms_source,
        ports.grants,
        ports.overdue,
    ):
        port()
    slots(WORKER).open()


@worker_shutting_down.connect
def give_back(**_: Any) -> None:
    """Ask for every held run to be released at its next safe point, so that another worker goes on with it."""
    watch.shut_down()


@worker_shutdown.connect
def wait_for_slots(**_: Any) -> None:
    """The process ends only when its runs have been released; what takes too long is killed from outside."""
    slots(WORKER).close()

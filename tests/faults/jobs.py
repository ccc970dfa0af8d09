"""What a forked process does until it comes to harm: a worker's work, a person's decision, a tick of beat."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from django.contrib.auth.models import User

from runtime_core import commands, decisions
from runtime_core.loop.drive import advance
from runtime_core.models import Interrupt, Run
from runtime_core.scheduling import reconcile
from tests.runtime.tools import effects
from tests.runtime.world import actor, decide_on

# Of each tool whose loss a person is asked about: what its line in the book begins with.
BOOKED = {"ledger_append": "pay", "charge": "charge:", "book": "book:"}


def look_up_and_decide(interrupt: Interrupt, person: User) -> Interrupt:
    """What a careful person does: approve; where an outcome is unknown, look into the book first."""
    if interrupt.kind == "outcome_unknown":
        began = BOOKED[interrupt.tool_call.tool]
        if any(line.startswith(began) for line in effects()):
            return decide_on(interrupt, person, "respond", response="It is in the book.")
    return decide_on(interrupt, person)


def live(worker: str, run_id: uuid.UUID, *, person: int) -> None:
    """A run's whole life in one process: driven, decided on, driven to its end."""
    approver = User.objects.get(id=person)
    for _ in range(12):
        moved = advance(worker, run_id)
        asked = list(Interrupt.objects.filter(run_id=run_id, status="open"))
        for interrupt in asked:
            look_up_and_decide(interrupt, approver)
        if not moved and not asked:
            return


def decide(worker: str, run_id: uuid.UUID, *, person: int) -> None:
    """One person decides what the run asks."""
    for interrupt in Interrupt.objects.filter(run_id=run_id, status="open"):
        look_up_and_decide(interrupt, User.objects.get(id=person))


def command(worker: str, run_id: uuid.UUID, *, person: int, name: str) -> None:
    """One command of an operator: `cancel_run`, `pause_run`, `resume_run` or `retry_run`."""
    getattr(commands, name)(actor(User.objects.get(id=person)), Run.objects.get(id=run_id))


def tick(worker: str, run_id: uuid.UUID) -> None:
    """All that beat asks for, once."""
    reconcile.reconcile()
    decisions.expire_due()
    reconcile.dispatch()


JOBS: dict[str, Callable[..., Any]] = {
    "advance": advance,
    "live": live,
    "decide": decide,
    "command": command,
    "tick": tick,
}

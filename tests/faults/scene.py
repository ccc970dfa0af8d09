"""One scripted life with every kind of tool and an approval: brought to harm, healed, and judged."""

from __future__ import annotations

import uuid
from collections import Counter
from typing import Any

from django.db import connection, transaction

from runtime_core import commands
from runtime_core.loop.drive import advance
from runtime_core.models import Agent, Permit, Quota, QuotaKind, Run
from runtime_core.scheduling import quotas, reconcile
from tests.faults.invariants import violations
from tests.faults.jobs import look_up_and_decide
from tests.runtime.tools import effects, effects_file
from tests.runtime.world import World, actor, call, calls, expire_lease, fresh, open_interrupts
from tests.runtime.zygote import Zygote

# The whole of it is about sixty points. Turns with two calls, so that a call's commit begins the next call.
TURNS = [
    {"text": "First a look, and a note.", "calls": [call("look", at="a"), call("note", text="n1")]},
    {"text": "Now the book.", "calls": [call("ledger_append", text="pay")]},
    {
        "text": "A seat, and the charge.",
        "calls": [call("book", place="7a"), call("charge", amount=5)],
    },
    {"text": "Done."},
]
# A process that sleeps inside a transaction is cut off by the database; its own time, 5 s, is shortened here.
SHORT_LOCKS = "SET idle_in_transaction_session_timeout = 150"
MOST_WORKERS = 20

Answer = dict[str, Any]


class Scene:
    """Runs of one agent, one after the other; `mutant` is a defect that every process of theirs has."""

    def __init__(self, world: World, zygote: Zygote, mutant: str = "") -> None:
        self.world = world
        self.zygote = zygote
        self.mutant = mutant
        self.agent = world.agent(TURNS, name=f"scene-{uuid.uuid5(uuid.NAMESPACE_OID, mutant).hex}")
        limit(QuotaKind.AGENT, agent=Agent.objects.get(name=self.agent, project=world.project))
        limit(QuotaKind.TOOL, name="charge")

    def begin(self) -> Run:
        """A new run, with an empty book of effects."""
        effects_file().unlink(missing_ok=True)
        return self.world.run_of(self.agent)

    def live(self, run: Run, at: int, action: str) -> Answer:
        """Let a process of its own live the run's life, and come to harm at its `at`-th point."""
        return self.fork(run, "live", at, action, person=self.world.bob.id)

    def fork(self, run: Run, job: str, at: int, action: str, **args: Any) -> Answer:
        """The same with any job."""
        return self.zygote.drive(
            run.id, at, action, job=job, args=args, sql=SHORT_LOCKS, mutant=self.mutant
        )

    def wake(self, sleeper: Answer, *, long: bool = True) -> None:
        """Let a stopped process go on, and wait until it has ended."""
        if "stopped" in sleeper:
            self.zygote.wait(sleeper["stopped"], long=long)

    def lose(self, run: Run) -> None:
        """Whoever has the run has lost it: the lease is over, and the reconciler has seen it."""
        free(run)
        if fresh(run).status == "running":
            expire_lease(run)

    def heal(self, run: Run) -> list[str]:
        """Healthy workers, ticks and people bring the run to its end; what is wrong if they cannot."""
        for _ in range(MOST_WORKERS):
            self.lose(run)
            now = fresh(run)
            if now.status == "failed":
                commands.retry_run(actor(self.world.alice), now)
            elif now.status == "paused":
                commands.resume_run(actor(self.world.alice), now)
            elif now.state.ended:
                return []
            for interrupt in open_interrupts(run):
                look_up_and_decide(interrupt, self.world.bob)
            advance("healer", run.id)
            reconcile.wake_due()
        return [f"still {fresh(run).status} after {MOST_WORKERS} workers"]

    def judge(self, run: Run) -> list[str]:
        """Everything that is wrong with a run that has come to its end."""
        ended = fresh(run)
        wrong = violations([run.id])
        if ended.status != "completed":
            return [*wrong, f"it is {ended.status}: {ended.error}"]
        ledger = calls(ended)
        if [c.status for c in ledger] != ["succeeded"] * 5:
            wrong.append(f"the ledger says {[c.status for c in ledger]}")
        reconcile.reconcile()
        if Permit.objects.filter(held_by=run.id).exists():
            wrong.append("it still has a place of a quota")
        asked = ended.interrupts.filter(kind="tool_approval").count()
        if asked != 1:
            wrong.append(f"the approval was asked {asked} times")
        return wrong + wrong_effects(ended)


def limit(kind: QuotaKind, **of: Any) -> None:
    """At most three at once, so that a place which is not given back is soon missed."""
    if Quota.objects.filter(kind=kind, **of).exists():
        return
    quota = Quota(kind=kind, at_once=3, **of)
    quota.key = str(quota.agent_id or quota.name)
    with transaction.atomic():
        quota.save()
        quotas.apply(quota)


def wrong_effects(run: Run) -> list[str]:
    """Each effect happened once under the key that the ledger has; one that was taken back does not count."""
    counts = Counter(effects())
    counts["book:7a"] -= counts.pop("cancel:7a", 0)
    key = {c.tool: c.idempotency_key for c in calls(run)}
    lines = [f"{key.get('note')}:n1", "pay", "book:7a", f"charge:{key.get('charge')}:5"]
    wrong = [f"this happened {counts[line]} times: {line}" for line in lines if counts[line] != 1]
    return wrong + [f"this happened too: {line}" for line in sorted(set(counts) - set(lines))]


def free(run: Run) -> None:
    """Wait until nobody has the run's row locked: a sleeper keeps it until the database cuts it off."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM run WHERE id = %s FOR UPDATE", [run.id])

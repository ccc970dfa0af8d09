"""What a policy would change on the events that are there: counts, and samples that are masked already."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from runtime_core.models import Event
from runtime_core.scope import Scope
from traces.gate import engine
from traces.models import RedactionPolicy
from traces.policies.checks import shown
from traces.policies.compiled import policy_of
from traces.redact.rules import Applied

EVENTS = 1_000
SAMPLES = 10
_SEARCHED = 10_000


@dataclass(slots=True)
class DryRun:
    """How many of the newest events in its scope it would change, which classes, and some of them as they would be."""

    looked_at: int = 0
    changed: int = 0
    classes: Counter[str] = field(default_factory=Counter)
    samples: list[str] = field(default_factory=list)


def dry_run(row: RedactionPolicy) -> DryRun:
    """Try the policy's own rules on the newest events. What was masked when it was stored cannot come back."""
    policy = policy_of(row, row.rules.all())
    applied = Applied(policy.rules, engine().marker)
    found = DryRun()
    events = Event.objects.filter(run__deleted_at=None).exclude(
        type__in=["run_status", "step_start", "checkpoint"]
    )
    rows = events.order_by("-ts").values_list("run__project_id", "run__agent_id", "data")
    for project, agent, data in rows[:_SEARCHED].iterator():
        if found.looked_at >= EVENTS:
            break
        if not policy.holds(Scope(project, agent, _tool_of(data)), "event"):
            continue
        found.looked_at += 1
        counts: dict[str, int] = {}
        after = applied.value(data, counts)
        if counts:
            found.changed += 1
            found.classes.update(counts)
            if len(found.samples) < SAMPLES:
                found.samples.append(shown(engine().redact(after).value))
    return found


def _tool_of(data: object) -> str:
    return str(data.get("tool", "")) if isinstance(data, dict) else ""

"""For how long a class of data is kept: the most specific policy, of equal ones the shorter, else the default."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from runtime_core.states import ENDED
from traces.holds import FREE
from traces.models import DataClass, RetentionPolicy

DEFAULT_DAYS = {
    DataClass.EVENTS: 3,
    DataClass.SPAN_PAYLOADS: 30,
    DataClass.SPANS: 90,
    DataClass.CHECKPOINTS: 7,
    DataClass.RUN_STATE: 180,
    DataClass.AUDIT_PAYLOADS: 365,
}
FOR_EVER = 1_000_000  # days: before any run

# True of a run whose data of the class has been kept long enough; with HELD before it.
DUE = f"""run.status = ANY(%(ended)s) AND run.ended_at < statement_timestamp() - make_interval(days => %(shortest)s)
    AND run.ended_at < statement_timestamp() - make_interval(days => COALESCE(
        (%(agents)s::jsonb ->> run.agent_id::text)::int, (%(projects)s::jsonb ->> run.project_id::text)::int,
        %(days)s))
    AND {FREE}"""


@dataclass(frozen=True, slots=True)
class Kept:
    """The days of one class: of everything, and of the projects and agents that have their own."""

    days: int
    projects: dict[str, int] = field(default_factory=dict)
    agents: dict[str, int] = field(default_factory=dict)

    @property
    def values(self) -> dict[str, Any]:
        """What DUE is executed with."""
        every = [self.days, *self.projects.values(), *self.agents.values()]
        return {
            "ended": sorted(status.value for status in ENDED),
            "shortest": min(every),
            "days": self.days,
            "projects": json.dumps(self.projects),
            "agents": json.dumps(self.agents),
        }


def kept(data_class: DataClass) -> Kept:
    """How long the class is kept now."""
    whole: list[int] = []
    projects: dict[str, int] = {}
    agents: dict[str, int] = {}
    for row in RetentionPolicy.objects.filter(data_class=data_class):
        days = FOR_EVER if row.days is None else row.days
        if row.agent_id:
            agents[str(row.agent_id)] = min(days, agents.get(str(row.agent_id), FOR_EVER))
        elif row.project_id:
            projects[str(row.project_id)] = min(days, projects.get(str(row.project_id), FOR_EVER))
        else:
            whole.append(days)
    return Kept(min(whole, default=DEFAULT_DAYS[data_class]), projects, agents)


def in_words(days: int) -> str:
    """`30 days`, or that it is kept for ever."""
    if days >= FOR_EVER:
        return "for ever"
    return f"{days} day" if days == 1 else f"{days} days"

"""A rule proves itself before it is stored: it compiles, meets its examples, and leaves most texts as they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from runtime_core.models import Event
from runtime_core.sanitize import canonical
from traces.gate import engine
from traces.models import RedactionRule
from traces.policies.compiled import rules_of
from traces.redact.rules import Applied, RuleError, Rules

SAMPLE = 200
# With fewer events a share says nothing.
SAMPLE_AT_LEAST = 20
MAX_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a rule is refused, and which field to mend."""

    field: str
    text: str


def problem_of(rule: RedactionRule) -> Problem | None:
    """The first reason to refuse the rule, if there is any."""
    try:
        rules = rules_of(rule)
    except RuleError as error:
        return Problem("pattern", str(error))
    if rule.kind == RedactionRule.Kind.KNOWN_VALUE:
        return _problem_of_source(rule, rules)
    works = _Works(rules, rule.kind)
    for line in _lines(rule.positives):
        if not works.on(line):
            return Problem("positives", f"It does not find {line[:80]!r}.")
    for line in _lines(rule.negatives):
        if works.on(line):
            return Problem("negatives", f"It finds {line[:80]!r}, which it must leave.")
    return _too_wide(works) if rule.kind != RedactionRule.Kind.ALLOW else None


def _problem_of_source(rule: RedactionRule, rules: Rules) -> Problem | None:
    if len(rule.pattern.strip("*_ ")) < 3:
        return Problem("pattern", "Name the variables by at least three characters.")
    if not rules.known:
        return Problem("pattern", f"This process has no environment variable {rule.pattern}.")
    return None


@dataclass(frozen=True, slots=True)
class _Works:
    rules: Rules
    kind: str

    def on(self, value: Any) -> bool:
        """True if the rule would do something to the value."""
        if self.kind == RedactionRule.Kind.ALLOW:
            return self.rules.allows(str(value))
        counts: dict[str, int] = {}
        Applied(self.rules, engine().marker).value(value, counts)
        return bool(counts)


def _too_wide(works: _Works) -> Problem | None:
    recent = list(recent_events(SAMPLE))
    changed = sum(works.on(data) for data in recent)
    if len(recent) < SAMPLE_AT_LEAST or changed <= MAX_SHARE * len(recent):
        return None
    return Problem(
        "pattern",
        f"It would change {changed} of the last {len(recent)} events; at most {MAX_SHARE:.0%} may be: "
        "make it narrower.",
    )


def recent_events(number: int) -> Iterable[Any]:
    """The data of the newest events that say something, newest first."""
    rows = Event.objects.filter(run__deleted_at=None).exclude(
        type__in=["run_status", "step_start", "checkpoint"]
    )
    return rows.order_by("-ts").values_list("data", flat=True)[:number]


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def shown(value: Any) -> str:
    """A value as one line of a sample."""
    return canonical(value)[:240]

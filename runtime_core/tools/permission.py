"""Whether a call may run, must be asked for, or is refused: a function of rules, tool and
arguments.

A `deny` that applies always wins. Else the most specific rule counts: a tool's own name before a
pattern, a rule with constraints before one without. An `allow` whose constraints do not hold falls
back to `ask`. What no rule covers: `deny` for high and critical risk, `ask` for the rest that
writes, `allow` for low-risk reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from runtime_core.errors import InvalidInput
from runtime_core.tools.constraint import BROKEN, HOLDS, evaluate, validate_constraints
from runtime_core.values import Effect, Json, Risk, ToolSpec, Verdict

__all__ = ["PermissionDecision", "Rule", "decide", "parse_permissions", "validate_constraints"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of an agent's permissions. `tool` is a name or a pattern such as `git_*`."""

    id: str
    tool: str
    verdict: Verdict
    constraints: Mapping[str, Json] = field(default_factory=dict)

    @property
    def specificity(self) -> tuple[int, int]:
        """Higher is more specific: first by the name (an exact one above any pattern), then by
        constraints.
        """
        literal = self.tool.translate({ord(c): None for c in "*?[]"})
        by_name = 1_000 if literal == self.tool else len(literal)
        return by_name, int(bool(self.constraints))


@dataclass(frozen=True, slots=True)
class PermissionDecision:
    """The verdict on one call, why, and by which rule (None: the default for the tool's risk)."""

    verdict: Verdict
    reason: str
    rule_id: str | None = None


def decide(rules: Sequence[Rule], tool: ToolSpec, args: Mapping[str, Json]) -> PermissionDecision:
    """The verdict on calling `tool` with `args`; anything unclear is never `allow`."""
    found = [
        _Judged(rule, *evaluate(rule.constraints, args, tool.schema, rule.verdict))
        for rule in rules
        if fnmatchcase(tool.name, rule.tool)
    ]
    for judged in found:
        # A refusal that cannot be checked refuses.
        if judged.rule.verdict is Verdict.DENY and judged.state in (HOLDS, BROKEN):
            return judged.decision(Verdict.DENY, "refuses it")
    counting = [judged for judged in found if judged.counts]
    if not counting:
        return _default(tool)
    top = max(judged.rule.specificity for judged in counting)
    return _among_equals([judged for judged in counting if judged.rule.specificity == top])


def parse_permissions(definition: Json) -> list[Rule]:
    """Rules from an agent's definition: `{tool: verdict}` or `{tool: {verdict, constraints}}`, or a
    list of those.

    InvalidInput names the entry that is wrong. The ids are the entries' names; rows get their own.
    """
    if not isinstance(definition, Mapping):
        raise InvalidInput("permissions: must map tool names to allow, ask or deny")
    rules: list[Rule] = []
    for name, value in definition.items():
        entries = value if isinstance(value, list) else [value]
        rules += [_rule(str(name), i, entry) for i, entry in enumerate(entries)]
    return rules


@dataclass(frozen=True, slots=True)
class _Judged:
    rule: Rule
    state: str
    why: str

    @property
    def counts(self) -> bool:
        """A rule that asks or refuses under a condition says nothing where the condition does not
        hold.
        """
        if self.rule.verdict is Verdict.ALLOW:
            return True
        return self.rule.verdict is Verdict.ASK and self.state in (HOLDS, BROKEN)

    def decision(self, verdict: Verdict, reason: str) -> PermissionDecision:
        rule = f"{self.rule.tool}: {self.rule.verdict}"
        said = f"The permission “{rule}” {reason}" + (f": {self.why}." if self.why else ".")
        return PermissionDecision(verdict, said, self.rule.id)


def _among_equals(judged: list[_Judged]) -> PermissionDecision:
    for one in judged:
        if one.rule.verdict is Verdict.ASK:
            return one.decision(Verdict.ASK, "wants a person to decide")
    for one in judged:
        if one.state == HOLDS:
            return one.decision(Verdict.ALLOW, "allows it")
    return judged[0].decision(Verdict.ASK, "allows it only within limits that this call is not in")


def _default(tool: ToolSpec) -> PermissionDecision:
    if tool.risk.level >= Risk.HIGH.level:
        return PermissionDecision(
            Verdict.DENY, f"No permission covers it, and its risk is {tool.risk}."
        )
    if tool.effect is Effect.READ and tool.risk is Risk.LOW:
        return PermissionDecision(Verdict.ALLOW, "It only reads, and its risk is low.")
    return PermissionDecision(
        Verdict.ASK, f"No permission covers it (risk {tool.risk}, effect {tool.effect})."
    )


def _rule(name: str, index: int, entry: Json) -> Rule:
    where = f"permissions.{name}"
    shaped = {"verdict": entry} if isinstance(entry, str) else entry
    if not isinstance(shaped, Mapping) or set(shaped) - {"verdict", "constraints"}:
        raise InvalidInput(f"{where}: must be allow, ask, deny, or {{verdict, constraints}}")
    try:
        verdict = Verdict(str(shaped.get("verdict")))
    except ValueError:
        raise InvalidInput(
            f"{where}: {shaped.get('verdict')!r} is not allow, ask or deny"
        ) from None
    constraints: Json = shaped.get("constraints") or {}
    problems = validate_constraints(constraints, verdict)
    if problems:
        raise InvalidInput(f"{where}: {problems[0]}")
    return Rule(f"{name}[{index}]", name, verdict, constraints)

"""From rows to rules: which hold where, and what a process keeps of them until they change."""

from __future__ import annotations

import fnmatch
import logging
import os
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from runtime_core.scope import Scope
from traces.models import RedactionPolicy, RedactionRule
from traces.redact import rules as pure
from traces.redact.rules import RuleError, Rules

_KEPT = 2_000
_STRICTNESS = [choice.value for choice in RedactionPolicy.Output]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Policy:
    """One policy in force."""

    scope: str
    project: uuid.UUID | None
    agent: uuid.UUID | None
    tool: str
    output: str
    surfaces: frozenset[str]
    rules: Rules

    def holds(self, scope: Scope | None, surface: str) -> bool:
        """True if it holds there. Where nobody has said whose data it is, it does."""
        if surface not in self.surfaces:
            return False
        if scope is None or self.scope == "global":
            return True
        if self.project is not None and self.project != scope.project:
            return False
        if self.scope == "tool":
            return scope.tool == self.tool
        # An agent's rules hold for data of its project of which nobody knows the agent.
        return self.scope != "agent" or scope.agent in (self.agent, None)

    def rules_in(self, scope: Scope | None) -> Rules:
        """Its rules there. An exception of one project is none where nobody has said whose data it is."""
        if scope is not None or self.scope == "global":
            return self.rules
        return replace(self.rules, allowed=())


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All policies in force at one version."""

    version: int = 0
    policies: tuple[Policy, ...] = ()
    state: tuple[int, uuid.UUID | None] = (0, None)
    """What `state()` was when it was read."""
    _made: dict[tuple[str, Scope | None], Rules] = field(default_factory=dict)

    def rules(self, surface: str, scope: Scope | None) -> Rules:
        """The rules that hold for a surface and a scope."""
        if not self.policies:
            return _NONE
        made = self._made.get((surface, scope))
        if made is None:
            if len(self._made) >= _KEPT:
                self._made.clear()
            made = _together(p.rules_in(scope) for p in self.policies if p.holds(scope, surface))
            self._made[(surface, scope)] = made
        return made

    def output(self, tool: str, scope: Scope | None) -> str:
        """What is kept of the tool's arguments and results: the strictest of what is said."""
        said = [
            policy.output
            for policy in self.policies
            if policy.scope == "tool"
            and policy.tool == tool
            and (scope is None or policy.project in (None, scope.project))
        ]
        return max(said, key=_STRICTNESS.index) if said else "redact"


_NONE = Rules()


def load() -> Snapshot:
    """The newest version of each policy, as the database has them now."""
    newest: dict[str, RedactionPolicy] = {}
    found = RedactionPolicy.objects.order_by("version").select_related("agent")
    rows = list(found.prefetch_related("rules"))
    for row in rows:
        newest[row.name] = row
    made = [policy_of(row, row.rules.all()) for row in newest.values() if row.enabled]
    newest_id = max((row.id for row in rows), default=None)
    return Snapshot(len(rows), tuple(made), (len(rows), newest_id))


def state() -> tuple[int, uuid.UUID | None]:
    """What changes with every version that is added, and with every project that goes."""
    newest_id = RedactionPolicy.objects.order_by("-id").values_list("id", flat=True).first()
    return RedactionPolicy.objects.count(), newest_id


def policy_of(row: RedactionPolicy, rules: Iterable[RedactionRule]) -> Policy:
    """A row with its rules, compiled."""
    project = row.agent.project_id if row.agent is not None else row.project_id
    return Policy(
        row.scope,
        project,
        row.agent_id,
        row.tool,
        row.output,
        frozenset(row.surfaces),
        _together(_compiled(rules)),
    )


def rules_of(rule: RedactionRule) -> Rules:
    """One rule, compiled; RuleError says why it cannot be used."""
    if rule.kind == RedactionRule.Kind.REGEX:
        return Rules(texts=(pure.compile_text(rule.pattern, rule.label),))
    if rule.kind == RedactionRule.Kind.KEY_NAME:
        key, text = pure.compile_key(rule.pattern, rule.label)
        return Rules(keys=(key,), texts=(text,))
    if rule.kind == RedactionRule.Kind.ALLOW:
        return Rules(allowed=(pure.compile_allowed(rule.pattern),))
    names = fnmatch.filter(os.environ, rule.pattern)
    return Rules(known=tuple(os.environ[name] for name in names))


def _compiled(rules: Iterable[RedactionRule]) -> Iterator[Rules]:
    for rule in rules:
        try:
            yield rules_of(rule)
        except RuleError:
            # It was checked when it was saved; whoever put it there by hand has to hear of it.
            logger.error("redaction rule %s cannot be used and is left out", rule.pk)


def _together(parts: Iterable[Rules]) -> Rules:
    listed = list(parts)
    return Rules(
        tuple(text for part in listed for text in part.texts),
        tuple(key for part in listed for key in part.keys),
        tuple(pattern for part in listed for pattern in part.allowed),
        tuple(value for part in listed for value in part.known),
    )

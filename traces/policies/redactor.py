"""The gate's redactor: the engine, then the policies that hold where it is used."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from runtime_core import scope as scopes
from runtime_core.models import Run
from runtime_core.sanitize import canonical, storable
from runtime_core.scope import Scope
from traces.policies.current import current
from traces.redact import WITHHELD, Engine, Redacted, TextStream
from traces.redact.rules import Applied, Rules, RuleStream

_WITHHOLDING = ("metadata_only", "drop")


@dataclass(frozen=True, slots=True)
class Gate:
    """Redacts for one surface; whose data it is says the scope given, else the one at work."""

    engine: Engine
    surface: str = "event"
    scope: Scope | None = None
    keeps_people: bool = False

    def on(self, surface: str, scope: Scope | None = None) -> Gate:
        """The same for another surface, and for data of this scope."""
        return replace(self, surface=surface, scope=scope)

    @property
    def version(self) -> int:
        """The version of the policies in force: each change of any raises it."""
        return current.snapshot().version

    def redact(self, value: Any) -> Redacted:
        """JSON-safe data of the same shape, with secrets and what the policies name replaced."""
        engine, applied = self._parts(self._scope())
        return _ruled(engine, applied, value)

    def text(self, text: str) -> str:
        """The text with secrets and what the policies name replaced."""
        engine, applied = self._parts(self._scope())
        clean = engine.text(text)
        if applied is None:
            return clean
        try:
            return applied.text(clean)
        except Exception:  # noqa: BLE001 (fail closed: whatever went wrong, it is not passed on)
            return WITHHELD

    def stream(self) -> TextStream | RuleStream:
        """A stream that gives out together what `text` makes of the whole; its rules are those of its start."""
        engine, applied = self._parts(self._scope())
        return (
            RuleStream(engine.stream(), applied)
            if applied and applied.rules.texts
            else engine.stream()
        )

    def of_tool(self, tool: str, value: Any) -> Redacted:
        """What people may see of a tool's arguments or result, as the policy of that tool says."""
        here = self._scope()
        kept = current.snapshot().output(tool, here)
        if kept == "metadata_only":
            return Redacted(_metadata(value), {"withheld": 1})
        if kept == "drop":
            return Redacted({"withheld": "policy"}, {"withheld": 1})
        engine, applied = self._parts(replace(here, tool=tool) if here else None)
        if kept == "none":
            engine = engine.with_allowed(_anybody)
        return _ruled(engine, applied, value)

    def reader(self, run_id: uuid.UUID) -> Callable[[Any], Any] | None:
        """What stored data of a run must pass before it is shown: the rules for pages, which may be newer than it."""
        scope = scope_of_run(run_id)
        applied = _applied(self.engine, current.snapshot().rules("page", scope))
        return (lambda value: _read(applied, value)) if applied else None

    def personal(self) -> Gate:
        """The same for who may see personal data: secrets go, people stay. For stores that are raw."""
        return replace(self, keeps_people=True)

    def withholds(self, tool: str) -> bool:
        """True if nothing of what this tool says may be shown."""
        return current.snapshot().output(tool, self._scope()) in _WITHHOLDING

    def _scope(self) -> Scope | None:
        return self.scope or scopes.current()

    def _parts(self, scope: Scope | None) -> tuple[Engine, Applied | None]:
        rules = current.snapshot().rules(self.surface, scope)
        engine = _engine_with(self.engine, rules)
        if self.keeps_people:
            engine = engine.with_allowed(_anybody)
        return engine, _applied(self.engine, rules)


def _anybody(found: str) -> bool:
    return True


def _read(applied: Applied, value: Any) -> Any:
    try:
        return applied.value(value, {})
    except Exception:  # noqa: BLE001 (fail closed: whatever went wrong, it is not shown)
        return WITHHELD


def _applied(engine: Engine, rules: Rules) -> Applied | None:
    return Applied(rules, engine.marker) if rules.texts or rules.keys else None


def _engine_with(engine: Engine, rules: Rules) -> Engine:
    if rules.known:
        engine = _knowing(engine, rules.known)
    return engine.with_allowed(rules.allows) if rules.allowed else engine


@functools.lru_cache(maxsize=50)
def _knowing(engine: Engine, values: tuple[str, ...]) -> Engine:
    """Building the index of known values costs more than a lookup."""
    return engine.with_known_values(values)


def _ruled(engine: Engine, applied: Applied | None, value: Any) -> Redacted:
    done = engine.redact(value)
    if applied is None:
        return done
    try:
        counts = dict(done.counts)
        return Redacted(applied.value(done.value, counts), counts)
    except Exception:  # noqa: BLE001 (fail closed: whatever went wrong, it is not passed on)
        return Redacted(WITHHELD, {"withheld": 1})


def _metadata(value: Any) -> dict[str, Any]:
    clean = storable(value)
    size = len(clean.encode() if isinstance(clean, str) else canonical(clean).encode())
    return {"withheld": "metadata_only", "type": type(clean).__name__, "bytes": size}


def scope_of_run(run_id: uuid.UUID) -> Scope | None:
    """Whose a run's data is; only asked of the database where some policy is not for everything."""
    if all(policy.scope == "global" for policy in current.snapshot().policies):
        return None
    return _scope_of_run(run_id)


@functools.lru_cache(maxsize=5_000)
def _scope_of_run(run_id: uuid.UUID) -> Scope | None:
    row = Run.objects.filter(id=run_id).values_list("project_id", "agent_id").first()
    return Scope(*row) if row else None

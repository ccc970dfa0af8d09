"""What this side needs from the sides above, as protocols bound by dotted paths in settings.

`INTERLOCK_PORTS = {"redactor": "traces.gate.redactor", "audit": "traces.audit.record", ...}`: each path names an
object that satisfies the protocol, or a function without arguments that returns one where the entry says so.
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, cast

from django.conf import settings
from django.utils.module_loading import import_string

from runtime_core.values import Actor, ApprovalTerms, Asked, Audit, Covered, Json, Span, ToolSpec


class Redacted(Protocol):
    """A value that may be stored and shown, and how many secrets of each class were taken out of it."""

    value: Any
    counts: dict[str, int]


class TextStream(Protocol):
    """Redacts text that comes in pieces; what it holds back comes out with `end`."""

    def feed(self, chunk: str) -> str: ...
    def end(self) -> str: ...


class Redactor(Protocol):
    """Takes secrets out of values before they are stored or sent; fails closed."""

    def redact(self, value: Json) -> Redacted: ...
    def text(self, text: str) -> str: ...
    def stream(self) -> TextStream: ...

    def of_tool(self, tool: str, value: Json) -> Redacted:
        """What people may see of a tool's arguments or result."""
        ...

    def reader(self, run_id: uuid.UUID) -> Callable[[Any], Any] | None:
        """What stored data of a run must pass before it is shown, where rules are newer than it; None if nothing."""
        ...

    def withholds(self, tool: str) -> bool:
        """True if nothing of what this tool says may be shown."""
        ...


class AuditLog(Protocol):
    """Keeps audit entries in the caller's transaction: they commit with what they tell of, or not at all."""

    def record(self, entries: Sequence[Audit]) -> None: ...


class SpanSink(Protocol):
    """Takes spans without making the caller wait; losing some in a crash is allowed, blocking is not."""

    def write(self, spans: Sequence[Span]) -> None: ...
    def flush(self) -> None: ...
    def abandon(self, run_id: uuid.UUID, before_epoch: int) -> None: ...


class DecisionGuard(Protocol):
    """Asked right before an approved call is executed: may the one who decided still decide? A reason if not."""

    def revoked(self, interrupt_id: uuid.UUID) -> str | None: ...


class TermsSource(Protocol):
    """Says under which terms people decide on calls: who may, how many of them, and until when."""

    def of(self, asked: Sequence[Asked]) -> list[ApprovalTerms]: ...


class Overdue(Protocol):
    """Asked when nobody decided in time, in the transaction that would reject, with run, interrupt and call locked."""

    def prolong(self, locked: Any) -> bool:
        """True if people get more time instead; that is written then."""


class Grants(Protocol):
    """Remembered approvals, by which a call may run that would be asked about otherwise."""

    def covering(
        self, run_id: uuid.UUID, tool: ToolSpec, args: Mapping[str, Json]
    ) -> Covered | None: ...

    def spend(
        self, grant_id: uuid.UUID, call_id: uuid.UUID, tool: ToolSpec, args: Mapping[str, Json]
    ) -> str | None:
        """Count one use, right before the call runs: None, or why it may not run by it any more."""


class Deletions(Protocol):
    """Hides a run or a thread at once, with all that derives from it, and deletes it in the background."""

    def ask(self, actor: Actor, kind: str, object_id: uuid.UUID, reason: str) -> dict[str, Json]:
        """What was asked for, as JSON. NotFound, NotEnded, PartOfRun, Held."""
        ...


@functools.cache
def _bound(name: str) -> Any:
    target = import_string(settings.INTERLOCK_PORTS[name])
    return target() if isinstance(target, type) or callable(target) else target


def redactor() -> Redactor:
    """The redactor of this process."""
    return cast(Redactor, _bound("redactor"))


def audit() -> AuditLog:
    """The audit log."""
    return cast(AuditLog, _bound("audit"))


def spans() -> SpanSink:
    """The sink for spans."""
    return cast(SpanSink, _bound("spans"))


def decision_guard() -> DecisionGuard:
    """The guard that re-checks a decision right before its effect."""
    return cast(DecisionGuard, _bound("decision_guard"))


def terms_source() -> TermsSource:
    """The source of the terms under which an interrupt opens."""
    return cast(TermsSource, _bound("terms_source"))


def grants() -> Grants:
    """The remembered approvals."""
    return cast(Grants, _bound("grants"))


def overdue() -> Overdue:
    """What decides on requests whose time is over."""
    return cast(Overdue, _bound("overdue"))


def deletions() -> Deletions:
    """What deletes runs and threads."""
    return cast(Deletions, _bound("deletions"))

"""Under which terms people decide on a request: values, the defaults, and how they are stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from runtime_core.limits import limits
from runtime_core.values import Json, Risk

REJECT, ESCALATE = "reject", "escalate"
ON_EXPIRY = (REJECT, ESCALATE)
REQUIRED_MAX = 9
UNDO_MAX = 120
EXPIRES_MAX = 30 * 24 * 60
_UNDO = {Risk.LOW: 5, Risk.MEDIUM: 5, Risk.HIGH: 10, Risk.CRITICAL: 0}


@dataclass(frozen=True, slots=True)
class Terms:
    """Who may decide, how many of them it takes, and until when.

    Who: somebody with one of the `roles`, of one of the `groups` (ids), or one of the `people` (ids).
    With none of the three, whoever has the right to decide in the project.
    """

    required: int = 1
    roles: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    people: tuple[int, ...] = ()
    requester_may: bool = True
    editor_may: bool = True
    machines_may: bool = True
    expires_minutes: int = 24 * 60
    on_expiry: str = REJECT
    escalation: tuple[Mapping[str, Json], ...] = ()
    undo_seconds: int = 5
    remember_may: bool = True

    @property
    def is_open_to_all(self) -> bool:
        """True if everybody who decides in the project may."""
        return not (self.roles or self.groups or self.people)

    @property
    def deciding(self) -> tuple[object, ...]:
        """What of it says who decides and how many; the rest binds nobody to decide anew."""
        whom = (self.roles, self.groups, self.people)
        return (self.required, *whom, self.requester_may, self.editor_may, self.machines_may)

    def as_json(self) -> dict[str, Json]:
        """As a row stores it."""
        return {key: list(v) if isinstance(v, tuple) else v for key, v in asdict(self).items()}


def defaults(risk: Risk) -> Terms:
    """What holds where no policy matches."""
    is_grave = risk.level >= Risk.HIGH.level
    return Terms(
        required=2 if risk is Risk.CRITICAL else 1,
        requester_may=not is_grave,
        machines_may=not is_grave,
        expires_minutes=limits().interrupt_hours * 60,
        undo_seconds=_UNDO[risk],
        remember_may=not is_grave,
    )


def from_json(stored: Mapping[str, Any], risk: Risk) -> Terms:
    """The terms that a row stores; the defaults for what an older row does not say."""
    given = {
        field.name: tuple(value) if isinstance(value, list) else value
        for field in fields(Terms)
        if (value := stored.get(field.name)) is not None
    }
    return Terms(**{**_as_fields(defaults(risk)), **given})


def demands_more(new: Terms, old: Terms) -> bool:
    """True if `new` refuses anything that `old` would have taken: more people, or not the same ones."""
    lost = any(
        getattr(old, name) and not getattr(new, name)
        for name in ("requester_may", "editor_may", "machines_may")
    )
    return lost or new.required > old.required or not _admits_all(new, old)


def _admits_all(new: Terms, old: Terms) -> bool:
    # Roles and names may let in people who have no right to decide of their own.
    if new.is_open_to_all or old.is_open_to_all:
        return new.is_open_to_all and old.is_open_to_all
    return (
        set(old.roles) <= set(new.roles)
        and set(old.groups) <= set(new.groups)
        and set(old.people) <= set(new.people)
    )


def _as_fields(terms: Terms) -> dict[str, Any]:
    return {field.name: getattr(terms, field.name) for field in fields(Terms)}

"""Filters of the list of traces, as an address has them and as the database asks for them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef, Q

from runtime_core.sanitize import storable_text
from traces.models import SpanRow

WITH = [
    ("errors", "With errors"),
    ("people", "With a person asked"),
    ("redactions", "With redactions"),
    ("handed", "With other agents"),
]
_SPANS = {
    "errors": Q(status__in=["error", "abandoned"]),
    "people": Q(kind="interrupt"),
    "redactions": ~Q(redactions={}),
    "handed": Q(kind="subagent"),
}
TEXT_CHARACTERS = 100


@dataclass(frozen=True, slots=True)
class TraceFilter:
    """`q`: in the title, or the id of a run; `has`: what its spans hold; `tool`: the name of one that ran."""

    q: str = ""
    has: str = ""
    tool: str = ""

    @classmethod
    def of(cls, given: Any) -> TraceFilter:
        """What of the query string is understood."""
        has = given.get("has", "")
        return cls(
            q=storable_text(given.get("q", "")).strip()[:TEXT_CHARACTERS],
            has=has if has in _SPANS else "",
            tool=storable_text(given.get("tool", "")).strip()[:TEXT_CHARACTERS],
        )

    @property
    def chosen(self) -> dict[str, str | None]:
        """Those that are set, for the form and the addresses."""
        return {"q": self.q or None, "has": self.has or None, "tool": self.tool or None}

    def where(self) -> Q:
        """The runs that it keeps."""
        kept = Q()
        if self.q:
            kept &= Q(title__icontains=self.q) | Q(id=_id_in(self.q))
        if self.has:
            kept &= Q(_spans(_SPANS[self.has]))
        if self.tool:
            kept &= Q(_spans(Q(name=self.tool) & ~Q(kind__in=["run", "llm", "interrupt"])))
        return kept


def _spans(which: Q) -> Exists:
    return Exists(SpanRow.objects.filter(which, run_id=OuterRef("pk")))


def _id_in(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None

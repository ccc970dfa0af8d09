"""One person's inbox within one request: which rows a view has, in which order, and how many there are."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest

from approvals import queries
from approvals.people import eligible
from approvals.queries import COUNT_MAX
from runtime_core.access import visible_projects
from runtime_core.errors import InvalidInput
from runtime_core.models import Agent, Interrupt
from runtime_core.queries import Page, paged
from runtime_core.states import InterruptStatus

VIEWS = ("mine", "all", "snoozed", "decided")
# What comes first; where two are equal, then, and at last the id, so that a page ends at one place.
SORTS: dict[str, tuple[str, ...]] = {
    "expiry": ("expires_at", "risk_order", "id"),
    "risk": ("risk_order", "expires_at", "id"),
    "newest": ("-created_at", "-id"),
    "oldest": ("created_at", "id"),
}
NEWEST_DECIDED = ("-decided_at", "-id")


@dataclass(frozen=True, slots=True)
class Filters:
    """What the inbox list is narrowed to and sorted by; it is the page's query string."""

    view: str = "mine"
    risk: str = ""
    agent: str = ""
    tool: str = ""
    sort: str = "expiry"

    @property
    def is_narrowed(self) -> bool:
        """True if there may be more that the filters hide."""
        return bool(self.risk or self.agent or self.tool)

    @property
    def order(self) -> tuple[str, ...]:
        """The columns by which the rows come."""
        return NEWEST_DECIDED if self.view == "decided" else SORTS[self.sort]


class Desk:
    """What one person's inbox holds. Who they are to the policies is looked up once, however many
    lists and counts are asked for.
    """

    def __init__(self, user: Any) -> None:
        self.user = user

    def page(self, filters: Filters, after: str = "") -> Page[Interrupt]:
        """So many rows of one view behind the cursor `after`; an unknown cursor begins at the top."""
        # Found and sorted by their keys alone: only the rows of the page are read whole.
        found = self._rows(filters).only("id", *(key.lstrip("-") for key in filters.order))
        try:
            keys = paged(found, filters.order, after or None, queries.LIST_MAX)
        except InvalidInput:
            keys = paged(found, filters.order, None, queries.LIST_MAX)
        whole = queries.whole(Interrupt.objects.all()).in_bulk([one.id for one in keys.items])
        items = [whole[one.id] for one in keys.items if one.id in whole]
        return Page(items, keys.next_cursor)

    @cached_property
    def open_count(self) -> int:
        """How many interrupts wait for the person, counted no further than COUNT_MAX."""
        return _bounded(self._mine)

    @cached_property
    def visible_open_count(self) -> int:
        """How many open interrupts the person sees, counted no further than COUNT_MAX."""
        return _bounded(self._open)

    @cached_property
    def snoozed_count(self) -> int:
        """How many open interrupts the person has put off."""
        return _bounded(self._snoozed)

    @cached_property
    def default_view(self) -> str:
        """Who decides nowhere looks at everything that is open."""
        return "mine" if eligible.decides_anywhere(self.user) else "all"

    def last_decided(self) -> Interrupt | None:
        """What was settled last among all that the person sees."""
        settled = self._visible.exclude(status=InterruptStatus.OPEN)
        return queries.whole(settled).order_by("-decided_at").first()

    def agent_names(self) -> list[str]:
        """The agents of the person's projects, for the filter."""
        names = Agent.objects.filter(project__in=self._projects, current__isnull=False)
        return list(names.order_by("name").values_list("name", flat=True).distinct()[:COUNT_MAX])

    def _rows(self, filters: Filters) -> QuerySet[Interrupt]:
        found = {
            "all": self._open,
            "snoozed": self._snoozed,
            "decided": self._visible.exclude(status=InterruptStatus.OPEN),
        }.get(filters.view)
        # The person's own is asked for only here: it takes some statements to know who they are.
        found = self._mine if found is None else found
        if filters.risk:
            found = found.filter(risk=filters.risk)
        if filters.agent:
            found = found.filter(run__agent__name=filters.agent)
        if filters.tool:
            found = found.filter(tool_call__tool=filters.tool)
        return found

    @cached_property
    def _projects(self) -> list[uuid.UUID]:
        return list(visible_projects(self.user).values_list("id", flat=True))

    @cached_property
    def _mine(self) -> QuerySet[Interrupt]:
        return queries.for_me(self.user)

    @property
    def _visible(self) -> QuerySet[Interrupt]:
        return Interrupt.objects.filter(project__in=self._projects)

    @property
    def _open(self) -> QuerySet[Interrupt]:
        return self._visible.filter(status=InterruptStatus.OPEN)

    @property
    def _snoozed(self) -> QuerySet[Interrupt]:
        return self._open.filter(id__in=queries.snoozed(self.user))


def desk_of(request: HttpRequest) -> Desk:
    """The desk of who asks, the same for the whole of a request."""
    found: Desk | None = getattr(request, "_desk", None)
    if found is None:
        found = Desk(request.user)
        request._desk = found  # type: ignore[attr-defined]
    return found


def _bounded(found: QuerySet[Interrupt]) -> int:
    return found.order_by()[:COUNT_MAX].count()

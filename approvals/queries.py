"""Reads of interrupts: which a person sees, which wait for them, and how one looks to them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from approvals.models import VOTES, Assignment, Decision, Snooze
from approvals.people import eligible
from approvals.people.rulings import ruling_on
from approvals.policy.rules import LISTED, Ruling
from runtime_core import decisions
from runtime_core.access import visible_projects
from runtime_core.errors import NotFound
from runtime_core.models import Interrupt
from runtime_core.queries import Page, paged
from runtime_core.states import ALLOWED_ACTIONS, InterruptKind, InterruptStatus
from runtime_core.tools import workspace
from runtime_core.tools.preview import preview
from runtime_core.tools.registry import registry
from runtime_core.values import Json

COUNT_MAX = 100
# A page of the list: what a person reads before the next, and what a page may cost.
LIST_MAX = 50
_RELATED = ("run", "run__agent", "run__created_by", "project", "tool_call", "decided_by")


@dataclass(frozen=True, slots=True)
class Shown:
    """One interrupt as one person may see it; `args` are the exact ones only if `is_raw`."""

    interrupt: Interrupt
    ruling: Ruling
    is_raw: bool
    args: Json
    schema: dict[str, Json]
    preview: Json
    viewer: Any = None

    @property
    def allowed_actions(self) -> tuple[str, ...]:
        """What can be decided on it, while it is open."""
        is_open = self.interrupt.status == InterruptStatus.OPEN
        return ALLOWED_ACTIONS[InterruptKind(self.interrupt.kind)] if is_open else ()


def visible(user: Any, token_project: uuid.UUID | None = None) -> QuerySet[Interrupt]:
    """Every interrupt of the projects that `user` may see."""
    projects = visible_projects(user, token_project).values("id")
    return whole(Interrupt.objects.filter(project__in=projects))


def whole(found: QuerySet[Interrupt]) -> QuerySet[Interrupt]:
    """With everything that a page says about an interrupt."""
    return found.select_related(*_RELATED)


def waiting_for(user: Any) -> QuerySet[Interrupt]:
    """The open interrupts that `user` may decide on and has not: the policies' rules as one condition."""
    if not user.is_authenticated or not user.is_active:
        return Interrupt.objects.none()
    found = Interrupt.objects.filter(eligible.named(user), status=InterruptStatus.OPEN)
    own_run = Q(run__created_by_id=user.pk, requester_may=False)
    own_edit = Q(changed_by_id=user.pk, terms__editor_may=False)
    return found.exclude(own_run | own_edit).exclude(required__gt=1, id__in=_voted_on(user))


def _voted_on(user: Any) -> QuerySet[Any]:
    """The interrupts whose version as it stands has a vote of `user` already."""
    votes = Decision.objects.filter(
        actor_id=user.pk,
        action__in=VOTES,
        version=F("interrupt__version"),
        interrupt__status=InterruptStatus.OPEN,
    )
    return votes.values("interrupt_id")


def for_me(user: Any) -> QuerySet[Interrupt]:
    """Those of them that the person has not put off, and that were not given to others."""
    given = Assignment.objects.filter(interrupt__status=InterruptStatus.OPEN)
    mine = given.filter(Q(person=user.pk) | Q(group__members=user.pk))
    to_others = Q(id__in=given.values("interrupt_id")) & ~Q(id__in=mine.values("interrupt_id"))
    return waiting_for(user).exclude(to_others).exclude(id__in=snoozed(user))


def snoozed(user: Any) -> QuerySet[Any]:
    """The interrupts that the person has put off for now."""
    return Snooze.objects.filter(user=user.pk, until__gt=Now()).values("interrupt_id")


def open_count(user: Any, token_project: uuid.UUID | None = None) -> int:
    """How many interrupts wait for `user`, counted no further than COUNT_MAX."""
    return _within(for_me(user), token_project).order_by()[:COUNT_MAX].count()


def open_ids(user: Any, token_project: uuid.UUID | None = None) -> list[str]:
    """The interrupts that wait for `user`, soonest expiry first, no more than LIST_MAX."""
    mine = _within(for_me(user), token_project).order_by("expires_at", "id")
    return [str(interrupt_id) for interrupt_id in mine.values_list("id", flat=True)[:LIST_MAX]]


def _within(found: QuerySet[Interrupt], token_project: uuid.UUID | None) -> QuerySet[Interrupt]:
    """A token that is bound to a project hears of no other."""
    return found.filter(project=token_project) if token_project else found


def get(user: Any, interrupt_id: uuid.UUID, token_project: uuid.UUID | None = None) -> Interrupt:
    """The interrupt if `user` may see it, else NotFound."""
    found = visible(user, token_project).filter(id=interrupt_id).first()
    if found is None:
        raise NotFound("There is no such request, or you may not see it.")
    return found


def shown_to(
    user: Any,
    interrupt: Interrupt,
    token_project: uuid.UUID | None = None,
    *,
    is_machine: bool = False,
) -> Shown:
    """The interrupt for one person: exact arguments while it is open and they may decide, else
    redacted ones.
    """
    ruling = ruling_on(interrupt, user.pk, token_project, is_machine=is_machine)
    facts = decisions.shown(interrupt)
    is_raw = ruling.may and interrupt.status == InterruptStatus.OPEN
    schema = facts["schema"] or {}
    return Shown(
        interrupt=interrupt,
        ruling=ruling,
        is_raw=is_raw,
        args=facts["args"] if is_raw else _ordered(interrupt.tool_call.args_redacted, schema),
        schema=schema,
        preview=_preview(interrupt, facts["args"]) if is_raw else None,
        viewer=user,
    )


def listed(interrupt: Interrupt) -> Shown:
    """The interrupt as lists show it to everybody who sees it: redacted, and without a look at any
    file.
    """
    tool = registry().get(interrupt.tool_call.tool)
    schema = dict(tool.spec.schema) if tool else {}
    return Shown(
        interrupt=interrupt,
        ruling=LISTED,
        is_raw=False,
        args=_ordered(interrupt.tool_call.args_redacted, schema),
        schema=schema,
        preview=None,
    )


def page(
    user: Any,
    token_project: uuid.UUID | None,
    status: InterruptStatus | None,
    run_id: uuid.UUID | None,
    cursor: str | None,
    limit: int | None,
) -> Page[Interrupt]:
    """Interrupts that `user` sees, soonest expiry first, from `cursor` on."""
    found = visible(user, token_project).prefetch_related("decisions")
    if status:
        found = found.filter(status=status.value)
    if run_id:
        found = found.filter(run_id=run_id)
    return paged(found, ("expires_at", "id"), cursor, limit)


def as_json(shown: Shown) -> dict[str, Json]:
    """The interrupt as the API gives it."""
    interrupt = shown.interrupt
    votes = votes_of(interrupt)
    return {
        "id": str(interrupt.id),
        "run_id": str(interrupt.run_id),
        "kind": interrupt.kind,
        "status": interrupt.status,
        "version": interrupt.version,
        "digest": interrupt.digest,
        "tool": interrupt.tool_call.tool,
        "args": shown.args,
        "schema": shown.schema,
        "risk": interrupt.risk,
        "allowed_actions": list(shown.allowed_actions),
        "required": interrupt.required,
        "decided": len(votes),
        "decided_by": interrupt.decided_by.get_username() if interrupt.decided_by else None,
        "changes": interrupt.detail.get("changes") or [],
        "votes": [
            {"by": v.actor_name, "action": v.action, "via": v.via, "at": v.created_at.isoformat()}
            for v in votes
        ],
        "expires_at": interrupt.expires_at.isoformat(),
        "created_at": interrupt.created_at.isoformat(),
    }


def _ordered(args: Json, schema: dict[str, Json]) -> Json:
    """The arguments in their schema's order, which the database's JSON does not keep."""
    properties = schema.get("properties")
    if not isinstance(args, dict) or not isinstance(properties, dict):
        return args
    known = {name: args[name] for name in properties if name in args}
    return known | args


def _preview(interrupt: Interrupt, args: Json) -> Json:
    """What the call would change, read from the run's workspace as it is now."""
    folder = workspace.path_of(interrupt.run_id)
    where = folder if folder.is_dir() else None
    return preview(interrupt.tool_call.tool, args if isinstance(args, dict) else {}, where)


def votes_of(interrupt: Interrupt) -> list[Decision]:
    """The votes on the version that stands, oldest first: those that count."""
    return [
        one
        for one in interrupt.decisions.all()
        if one.version == interrupt.version and one.action in VOTES
    ]

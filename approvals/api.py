"""The inbox over HTTP for programs: list, read and decide on interrupts."""

from __future__ import annotations

import uuid
from typing import Any, Literal

from django.http import HttpRequest, HttpResponse
from ninja import Router, Schema
from pydantic import ConfigDict, Field, StrictInt, StrictStr

from approvals import commands, grants, queries
from runtime_core.api.auth import caller as caller_of
from runtime_core.api.idempotency import once
from runtime_core.callers import Caller
from runtime_core.errors import DecisionConflict
from runtime_core.states import InterruptStatus

NO_REASON = "No reason was given."

router = Router(tags=["interrupts"])


class RememberIn(Schema):
    """That an approval shall hold for later calls like it; without conditions for the same arguments."""

    model_config = ConfigDict(extra="forbid", strict=True)

    scope: Literal["run", "thread", "agent"]
    minutes: StrictInt = Field(ge=1, le=grants.MINUTES_MAX)
    uses: StrictInt = Field(default=100, ge=1, le=grants.USES_MAX)
    conditions: dict[str, Any] | None = None


class DecisionIn(Schema):
    """A decision on exactly one version of one interrupt; whatever is not in this form is refused,
    never guessed.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    action: Literal["approve", "reject", "edit", "respond"]
    version: StrictInt = Field(ge=1, le=2_147_483_647)
    digest: StrictStr = Field(min_length=1, max_length=64)
    args: dict[str, Any] | None = None
    response: Any = None
    reason: StrictStr | None = Field(default=None, max_length=commands.REASON_MAX)
    remember: RememberIn | None = None


class VoteOut(Schema):
    """One vote on the version as it stands. `via` is `machine` for a service token."""

    by: str
    action: str
    via: str
    at: str


class InterruptOut(Schema):
    """An interrupt. `args` are the exact ones only when one open interrupt is read by somebody who
    may decide on it.
    """

    id: uuid.UUID
    run_id: uuid.UUID
    kind: str
    status: str
    version: int
    digest: str
    tool: str
    args: Any
    args_schema: dict[str, Any] = Field(alias="schema")
    risk: str
    allowed_actions: list[str]
    required: int
    decided: int
    decided_by: str | None
    votes: list[VoteOut]
    expires_at: str
    created_at: str


class InterruptsOut(Schema):
    """One page of interrupts, those that expire first in front."""

    items: list[InterruptOut]
    next_cursor: str | None


@router.get("/interrupts", response=InterruptsOut, by_alias=True)
def list_interrupts(
    request: HttpRequest,
    status: InterruptStatus | None = None,
    run_id: uuid.UUID | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Any:
    """The interrupts of your projects, with redacted arguments."""
    caller = caller_of(request)
    page = queries.page(caller.user, caller.token_project, status, run_id, cursor, limit)
    items = [queries.as_json(queries.listed(interrupt)) for interrupt in page.items]
    return {"items": items, "next_cursor": page.next_cursor}


@router.get("/interrupts/{uuid:interrupt_id}", response=InterruptOut, by_alias=True)
def read_interrupt(request: HttpRequest, interrupt_id: uuid.UUID) -> Any:
    """One interrupt; with exact arguments if you may decide on it, which is kept in the audit."""
    caller = caller_of(request)
    shown = _shown(caller, interrupt_id)
    if shown.is_raw:
        commands.record_viewing(caller.actor, shown.interrupt)
    return queries.as_json(shown)


@router.post("/interrupts/{uuid:interrupt_id}/decisions", response=InterruptOut, by_alias=True)
def decide(request: HttpRequest, interrupt_id: uuid.UUID, body: DecisionIn) -> HttpResponse:
    """Decide once, on the version and digest that you were shown; a repeat of yours gets the same
    answer.
    """
    caller = caller_of(request)
    reason = body.reason or (NO_REASON if body.action == "reject" else "")
    opinion = commands.Opinion(**{**body.dict(exclude={"remember"}), "reason": reason})
    wish = grants.Wish(**body.remember.dict()) if body.remember else None
    # Before the transaction of `once`, which would take the audit of a refusal back with it.
    commands.admit(caller.actor, interrupt_id, opinion, token_project=caller.token_project)
    return once(request, lambda: (200, _decided(caller, interrupt_id, opinion, wish)))


def _decided(
    caller: Caller, interrupt_id: uuid.UUID, opinion: commands.Opinion, wish: grants.Wish | None
) -> dict[str, Any]:
    project = caller.token_project
    try:
        grants.decide_and_remember(caller.actor, interrupt_id, opinion, wish, token_project=project)
    except DecisionConflict as error:
        # Whoever came second is told what is there now, and by whom.
        error.data["current"] = queries.as_json(_shown(caller, interrupt_id))
        raise
    return queries.as_json(_shown(caller, interrupt_id))


def _shown(caller: Caller, interrupt_id: uuid.UUID) -> queries.Shown:
    interrupt = queries.get(caller.user, interrupt_id, caller.token_project)
    return queries.shown_to(caller.user, interrupt, caller.token_project)

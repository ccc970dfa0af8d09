"""The inbox over HTTP for programs: list, read and decide on interrupts."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, Literal

from django.http import HttpRequest, HttpResponse
from ninja import Router, Schema
from pydantic import ConfigDict, Field, StrictBool, StrictInt, StrictStr

from approvals import grants, queries
from approvals.deciding import changing, commands
from approvals.inbox.explaining import policy_as_json
from runtime_core.api.auth import caller as caller_of
from runtime_core.api.idempotency import once
from runtime_core.callers import Caller
from runtime_core.errors import DecisionConflict
from runtime_core.states import InterruptStatus
from runtime_core.values import Actor

NO_REASON = "No reason was given."

router = Router(tags=["interrupts"])


class RememberIn(Schema):
    """That an approval shall hold for later calls like it; without conditions for the same arguments."""

    model_config = ConfigDict(extra="forbid", strict=True)

    scope: Literal["run", "thread", "agent"]
    minutes: StrictInt = Field(ge=1, le=grants.MINUTES_MAX)
    uses: StrictInt = Field(default=100, ge=1, le=grants.USES_MAX)
    conditions: dict[str, Any] | None = None


class OpinionIn(Schema):
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
    compensate: StrictBool = False


class DecisionIn(OpinionIn):
    """The same, and whether it shall be remembered for later calls like it."""

    remember: RememberIn | None = None


class ProposalIn(Schema):
    """Other arguments for exactly one version, put up for decision without deciding."""

    model_config = ConfigDict(extra="forbid", strict=True)

    version: StrictInt = Field(ge=1, le=2_147_483_647)
    digest: StrictStr = Field(min_length=1, max_length=64)
    args: dict[str, Any]
    reason: StrictStr = Field(default="", max_length=commands.REASON_MAX)


class UndoIn(Schema):
    """The version on which the decision counted that shall be taken back."""

    model_config = ConfigDict(extra="forbid", strict=True)

    version: StrictInt = Field(ge=1, le=2_147_483_647)


class OverrideIn(OpinionIn):
    """A decision past the approval policy, with the reason that the audit keeps."""

    reason: StrictStr = Field(min_length=1, max_length=commands.REASON_MAX)


class VoteOut(Schema):
    """One vote on the version as it stands. `via` is `machine` for a service token."""

    by: str
    action: str
    via: str
    at: str


class ChangeOut(Schema):
    """What differs, redacted, from what people last let run: for requests of kind drift."""

    what: str
    before: str
    after: str


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
    changes: list[ChangeOut]
    expires_at: str
    created_at: str


class InterruptsOut(Schema):
    """One page of interrupts, those that expire first in front."""

    items: list[InterruptOut]
    next_cursor: str | None


class PolicyRefOut(Schema):
    """One version of an approval policy."""

    id: uuid.UUID
    name: str
    version: int


class TermsOut(Schema):
    """Who may decide, how many it takes and until when; with no roles, groups and people, whoever
    decides in the project.
    """

    required: int
    roles: list[str]
    groups: list[str]
    people: list[str]
    requester_may: bool
    editor_may: bool
    machines_may: bool
    expires_minutes: int
    on_expiry: str
    escalation: list[dict[str, Any]]
    undo_seconds: int
    remember_may: bool


class ConsideredOut(Schema):
    """One policy that was looked at; `why_not` is empty for the one that applies."""

    name: str
    version: int
    applies: bool
    why_not: str


class PolicyOut(Schema):
    """Under which policy an interrupt stands (null: the defaults), its terms, and why no other applies.
    `has_changed` where another would apply today.
    """

    policy: PolicyRefOut | None
    terms: TermsOut
    considered: list[ConsideredOut]
    has_changed: bool


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
    return queries.as_json(_seen(caller, interrupt_id))


@router.get("/interrupts/{uuid:interrupt_id}/policy", response=PolicyOut)
def read_policy(request: HttpRequest, interrupt_id: uuid.UUID) -> Any:
    """Who may decide on an interrupt, and why."""
    caller = caller_of(request)
    return policy_as_json(queries.get(caller.user, interrupt_id, caller.token_project))


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

    def act(actor: Actor, interrupt_id: uuid.UUID, what: object, **more: Any) -> None:
        grants.decide_and_remember(actor, interrupt_id, opinion, wish, **more)

    return _once(request, caller, interrupt_id, act, opinion)


@router.post("/interrupts/{uuid:interrupt_id}/proposals", response=InterruptOut, by_alias=True)
def propose(request: HttpRequest, interrupt_id: uuid.UUID, body: ProposalIn) -> HttpResponse:
    """Propose other arguments without deciding: the next version, on which everybody decides anew."""
    caller = caller_of(request)
    opinion = commands.Opinion("edit", **body.dict())
    commands.admit(
        caller.actor, interrupt_id, opinion, token_project=caller.token_project, for_edit=True
    )
    return _once(request, caller, interrupt_id, changing.propose, opinion)


@router.post("/interrupts/{uuid:interrupt_id}/undo", response=InterruptOut, by_alias=True)
def undo(request: HttpRequest, interrupt_id: uuid.UUID, body: UndoIn) -> HttpResponse:
    """Take your decision back while it has had no effect; the interrupt opens again as its next version."""
    caller = caller_of(request)
    changing.admit_undo(
        caller.actor, interrupt_id, body.version, token_project=caller.token_project
    )
    return _once(request, caller, interrupt_id, changing.undo, body.version)


@router.post("/interrupts/{uuid:interrupt_id}/override", response=InterruptOut, by_alias=True)
def override(request: HttpRequest, interrupt_id: uuid.UUID, body: OverrideIn) -> HttpResponse:
    """Settle it alone and past the policy: for superusers, with a reason, marked in the audit."""
    caller = caller_of(request)
    opinion = commands.Opinion(**body.dict())
    commands.admit(
        caller.actor, interrupt_id, opinion, token_project=caller.token_project, past_policy=True
    )
    return _once(request, caller, interrupt_id, commands.override, opinion)


def _once(
    request: HttpRequest,
    caller: Caller,
    interrupt_id: uuid.UUID,
    act: Callable[..., object],
    what: object,
) -> HttpResponse:
    """Do it once, and give the interrupt as it is then."""

    def answered() -> tuple[int, dict[str, Any]]:
        act(caller.actor, interrupt_id, what, token_project=caller.token_project)
        return 200, queries.as_json(_seen(caller, interrupt_id))

    try:
        return once(request, answered)
    except DecisionConflict as error:
        # Whoever came second is told what is there now, and by whom; outside of the transaction of
        # `once`, which took back whatever was written in it.
        error.data["current"] = queries.as_json(_seen(caller, interrupt_id))
        raise


def _seen(caller: Caller, interrupt_id: uuid.UUID) -> queries.Shown:
    """As the caller may see it; that they were shown exact arguments is kept in the audit."""
    shown = _shown(caller, interrupt_id)
    if shown.is_raw:
        commands.record_viewing(caller.actor, shown.interrupt)
    return shown


def _shown(caller: Caller, interrupt_id: uuid.UUID) -> queries.Shown:
    interrupt = queries.get(caller.user, interrupt_id, caller.token_project)
    is_machine = caller.actor.is_machine
    return queries.shown_to(caller.user, interrupt, caller.token_project, is_machine=is_machine)

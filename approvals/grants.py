"""Remembered approvals: made with a decision, judged at each call, ended by whoever may.

A grant never beats a deny: it is only asked where the permissions say that a person must decide.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import uuid
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from approvals.deciding import commands
from approvals.deciding.entry import find
from approvals.deciding.opinion import Opinion
from approvals.deciding.records import record
from approvals.models import Grant, GrantUse
from approvals.models.grant import Scope
from approvals.people.rulings import person_in, ruling_on
from approvals.policy.rules import may_decide, resolve
from approvals.policy.stored import asked_of, current, resolved_now
from approvals.teamwork.items import person_id
from runtime_core import clock, ports
from runtime_core.access import Can, allowed, require_person, visible_projects
from runtime_core.errors import InvalidPayload, NotAllowed, NotFound
from runtime_core.models import Interrupt, Run
from runtime_core.sanitize import canonical
from runtime_core.states import InterruptKind, InterruptStatus
from runtime_core.tools.constraint import HOLDS, evaluate, validate_constraints
from runtime_core.transactions import one_commit
from runtime_core.values import Actor, Asked, Audit, Covered, Json, ToolSpec

MINUTES_MAX = 30 * 24 * 60
USES_MAX = 1_000
CONDITIONS_MAX = 2_000
# So many of one tool are looked at for one call; who has more has them asked.
FOUND_MAX = 50
_GRANTED = (InterruptStatus.APPROVED, InterruptStatus.EDITED)
_RELATED = ("grantor", "project", "agent", "interrupt__run__agent")


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody who approves wants to be remembered. No conditions: only the same arguments."""

    scope: str
    minutes: int
    uses: int = 100
    conditions: Mapping[str, Json] | None = field(default=None)


def wish_of(form: Mapping[str, str]) -> Wish | None:
    """What the page's form asks to be remembered; None if nothing. InvalidPayload if it cannot be read."""
    if not form.get("remember_scope") or form.get("action") not in ("approve", "edit"):
        return None
    minutes, text = form.get("remember_minutes", ""), form.get("remember_conditions", "").strip()
    try:
        conditions = json.loads(text) if text else None
    except (ValueError, RecursionError):
        conditions = text
    if not (minutes.isascii() and minutes.isdecimal() and len(minutes) < 9):
        raise InvalidPayload("remember.minutes: must be a number.", field="remember.minutes")
    return Wish(form["remember_scope"], int(minutes), conditions=conditions)


def check(actor: Actor, interrupt: Interrupt, wish: Wish) -> None:
    """Pass if `wish` can be remembered with an approval of this; else InvalidPayload or NotAllowed."""
    if wish.scope not in Scope.values:
        raise InvalidPayload(
            f"remember.scope: must be {', '.join(Scope.values)}.", field="remember.scope"
        )
    _check_bounds("minutes", wish.minutes, MINUTES_MAX)
    _check_bounds("uses", wish.uses, USES_MAX)
    if wish.conditions is not None:
        problems = validate_constraints(wish.conditions)
        if not wish.conditions or problems or len(canonical(wish.conditions)) > CONDITIONS_MAX:
            why = (
                problems[0] if problems else f"give 1 to {CONDITIONS_MAX} characters of conditions"
            )
            raise InvalidPayload(f"remember.conditions: {why}", field="remember.conditions")
    if interrupt.kind != InterruptKind.TOOL_APPROVAL:
        raise InvalidPayload("remember: only the approval of a tool call can be remembered.")
    if actor.is_machine or not may_be_remembered(interrupt):
        raise NotAllowed("The approval policy does not allow this decision to be remembered.")


def may_be_remembered(interrupt: Interrupt) -> bool:
    """True if the policy lets the approval of this call be remembered, which one person alone gives."""
    terms = resolved_now(interrupt).terms
    is_call = interrupt.kind == InterruptKind.TOOL_APPROVAL
    return is_call and terms.remember_may and terms.required == 1


def decide_and_remember(
    actor: Actor,
    interrupt_id: uuid.UUID,
    opinion: Opinion,
    wish: Wish | None,
    *,
    token_project: uuid.UUID | None = None,
    undoable: bool = False,
) -> None:
    """Decide, and keep what was approved for later calls like it if `wish` says so: both or neither."""
    if wish:
        # Before the transaction, which would take the audit of a refusal back with it.
        commands.admit(actor, interrupt_id, opinion, token_project=token_project)
    with one_commit("decide and remember") if wish else nullcontext():
        decided = commands.decide(
            actor, interrupt_id, opinion, token_project=token_project, undoable=undoable
        )
        if wish and decided.status != InterruptStatus.OPEN:
            remember(actor, interrupt_id, wish)


def remember(actor: Actor, interrupt_id: uuid.UUID, wish: Wish) -> Grant:
    """Keep the approval that `actor` has just given for later calls like it; again, the same one.

    InvalidPayload or NotAllowed if it cannot be remembered; then nothing was changed.
    """
    interrupt = find(interrupt_id)
    kept = Grant.objects.filter(interrupt=interrupt, version=interrupt.version).first()
    if kept is not None and kept.grantor_id == actor.user_id:
        return kept
    check(actor, interrupt, wish)
    if interrupt.status not in _GRANTED or interrupt.decided_by_id != actor.user_id:
        raise NotAllowed("Only who approved a request may have it remembered.")
    ruling = ruling_on(interrupt, actor.user_id)
    if not ruling.may or ruling.stands_in_for:
        raise NotAllowed("Only who may decide on such requests themselves has one remembered.")
    with one_commit("remember"):
        grant = _row(actor, interrupt, wish)
        grant.save()
        grant.refresh_from_db()
        _record("grant.created", actor, grant)
    return grant


def revoke(actor: Actor, user: Any, grant_id: uuid.UUID) -> Grant:
    """End a grant: its grantor, a manager of the project, or who decides there may. Again does no
    harm.
    """
    require_person(actor, "end a remembered approval")
    grant = visible(user).filter(id=grant_id).first()
    if grant is None:
        raise NotFound("There is no such remembered approval, or you may not see it.")
    if not may_revoke(user, grant):
        raise NotAllowed("Only its grantor, an approver or a project admin ends it.")
    end(actor, grant)
    return grant


def end(actor: Actor, grant: Grant) -> None:
    """The same, for a caller that has asked whether `actor` may."""
    with one_commit("revoke grant"):
        ended = Grant.objects.filter(id=grant.id, revoked_at=None)
        if ended.update(revoked_at=Now(), revoked_by=actor.user_id):
            _record("grant.revoked", actor, grant)
    grant.refresh_from_db()


def may_revoke(user: Any, grant: Grant) -> bool:
    """True for those who may end it."""
    rights = allowed(user, grant.project_id)
    return grant.grantor_id == user.pk or bool(rights & {Can.DECIDE, Can.MANAGE})


def visible(user: Any, token_project: uuid.UUID | None = None) -> QuerySet[Grant]:
    """The grants of the projects that `user` may see, newest first."""
    projects = visible_projects(user, token_project).values("id")
    return Grant.objects.filter(project__in=projects).select_related(*_RELATED)


def is_live(grant: Grant) -> bool:
    """True if nothing on the row itself has ended it, nor its decision been taken back."""
    decided = grant.interrupt
    stands = decided.status in _GRANTED and decided.version == grant.version
    is_spent = grant.uses >= grant.max_uses
    is_over = grant.revoked_at is not None or grant.expires_at <= clock.now()
    return stands and not is_spent and not is_over


class Source:
    """What `runtime_core.ports` binds."""

    def covering(
        self, run_id: uuid.UUID, tool: ToolSpec, args: Mapping[str, Json]
    ) -> Covered | None:
        """The grant by which this call may run, if there is one that holds in every respect."""
        run = Run.objects.select_related("agent").get(id=run_id)
        found = Grant.objects.filter(
            _usable(),
            Q(run=run) | Q(thread=run.thread_id) | Q(agent=run.agent_id),
            project=run.project_id,
            tool=tool.name,
            schema_digest=tool.digest,
            uses__lt=F("max_uses"),
        )
        for grant in found.select_related("grantor").order_by("created_at")[:FOUND_MAX]:
            if _why_not(grant, run, tool, args) is None:
                return Covered(grant.id, _in_words(grant))
        return None

    def spend(
        self, grant_id: uuid.UUID, call_id: uuid.UUID, tool: ToolSpec, args: Mapping[str, Json]
    ) -> str | None:
        """Count one use of it for this call, once; or say why the call may not run by it now."""
        with one_commit("spend grant"):
            live = Grant.objects.select_for_update(of=("self",)).filter(_usable(), id=grant_id)
            grant = live.select_related("grantor").first()
            run = Run.objects.select_related("agent").filter(tool_calls__id=call_id).first()
            if grant is None or run is None:
                return "The remembered approval was ended, so the call was not run."
            if GrantUse.objects.filter(tool_call_id=call_id).exists():
                return _why_not(grant, run, tool, args)
            if grant.uses >= grant.max_uses:
                return "The remembered approval is used up, so the call was not run."
            why_not = _why_not(grant, run, tool, args)
            if why_not is None:
                _count(grant, run, call_id)
            return why_not


def source() -> Source:
    """The grants as this process asks them."""
    return Source()


def _check_bounds(name: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise InvalidPayload(
            f"remember.{name}: must be from 1 to {most}.", field=f"remember.{name}"
        )


def _row(actor: Actor, interrupt: Interrupt, wish: Wish) -> Grant:
    run, call = interrupt.run, interrupt.tool_call
    return Grant(
        project_id=interrupt.project_id,
        interrupt=interrupt,
        version=interrupt.version,
        grantor_id=person_id(actor),
        scope=wish.scope,
        run=run if wish.scope == Scope.RUN else None,
        thread_id=run.thread_id if wish.scope == Scope.THREAD else None,
        agent_id=run.agent_id if wish.scope == Scope.AGENT else None,
        tool=call.tool,
        schema_digest=call.schema_digest,
        args_digest="" if wish.conditions else digest_of(asked_of(interrupt).args),
        conditions=dict(wish.conditions or {}),
        # Not before the decision can no longer be taken back.
        valid_from=interrupt.undo_until or Now(),
        expires_at=Now() + dt.timedelta(minutes=wish.minutes),
        max_uses=wish.uses,
    )


def digest_of(args: Mapping[str, Json]) -> str:
    """What the same arguments have in common, in whatever order and spacing a model wrote them."""
    return hashlib.sha256(canonical(dict(args)).encode("utf-8", "surrogatepass")).hexdigest()


def _usable() -> Q:
    """By the database's clock. What was taken back after all was never granted."""
    return Q(
        revoked_at=None,
        valid_from__lte=Now(),
        expires_at__gt=Now(),
        interrupt__status__in=_GRANTED,
        interrupt__version=F("version"),
        grantor__is_active=True,
    )


def _why_not(grant: Grant, run: Run, tool: ToolSpec, args: Mapping[str, Json]) -> str | None:
    """What stands against the call's running by the grant; None if nothing does."""
    if grant.tool != tool.name or grant.schema_digest != tool.digest:
        return "The tool's definition changed after its approval was remembered."
    if not _is_for(grant, run):
        return "The remembered approval is for another run."
    if not _takes(grant, tool, args):
        return "The remembered approval is for other arguments."
    asked = Asked(run.project_id, run.agent.name, tool.name, tool.risk, args, tool.schema)
    terms = resolve(current(run.project_id), asked).terms
    if not terms.remember_may or terms.required > 1:
        return "The approval policy no longer allows approvals to be remembered."
    person = person_in(run.project_id, grant.grantor_id, requester_id=run.created_by_id)
    if person is None or not may_decide(person, terms).may:
        return f"{grant.grantor.get_username()}, who allowed it, may not decide on such calls now."
    return None


def _is_for(grant: Grant, run: Run) -> bool:
    """What was allowed for a thread or an agent does not reach into the runs that they start."""
    if grant.scope == Scope.RUN:
        return grant.run_id == run.id
    if run.parent_call is not None:
        return False
    if grant.scope == Scope.THREAD:
        return grant.thread_id == run.thread_id
    return grant.agent_id == run.agent_id


def _takes(grant: Grant, tool: ToolSpec, args: Mapping[str, Json]) -> bool:
    if grant.args_digest:
        return grant.args_digest == digest_of(args)
    return bool(grant.conditions) and evaluate(grant.conditions, args, tool.schema)[0] == HOLDS


def _count(grant: Grant, run: Run, call_id: uuid.UUID) -> None:
    GrantUse.objects.create(grant=grant, tool_call_id=call_id, run=run)
    Grant.objects.filter(id=grant.id).update(uses=F("uses") + 1)
    actor = Actor(grant.grantor_id, grant.grantor.get_username(), via="grant")
    entry = Audit(
        "grant.used",
        actor,
        "grant",
        str(grant.id),
        project_id=grant.project_id,
        run_id=run.id,
        data={"tool": grant.tool, "tool_call": str(call_id), "use": grant.uses + 1},
    )
    ports.audit().record([entry])


def _in_words(grant: Grant) -> str:
    how = "the same arguments" if grant.args_digest else "arguments like these"
    until = f"{grant.expires_at:%Y-%m-%d %H:%M} UTC"
    who = grant.grantor.get_username()
    return f"{who} allowed it for {grant.get_scope_display()} with {how} until {until}."


def _record(action: str, actor: Actor, grant: Grant) -> None:
    record(
        action,
        actor,
        grant.interrupt,
        grant=str(grant.id),
        tool=grant.tool,
        scope=grant.scope,
        same_arguments=bool(grant.args_digest),
        conditions=grant.conditions,
        expires_at=grant.expires_at.isoformat(),
        uses=grant.uses,
        max_uses=grant.max_uses,
    )

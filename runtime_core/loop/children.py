"""Runs that work on a tool call of another run: how one is started, once a call, and what its end is to the call.

A child is an ordinary run of the same project: its own agent's tools and permissions, its own approvals. Its
parent holds no worker meanwhile. What it may spend and how long it may take comes out of what its parent has left.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from django.db.models import DurationField, ExpressionWrapper, F
from django.db.models.functions import Now

from runtime_core import new_run, ports
from runtime_core.errors import Fenced, ToolFailed
from runtime_core.events.publish import announce
from runtime_core.limits import limits
from runtime_core.loop.work import Work
from runtime_core.models import Agent, AgentVersion, Run, Thread
from runtime_core.run_limits import RequestedLimits, requested
from runtime_core.sanitize import clip, storable_text
from runtime_core.states import CallStatus, RunStatus
from runtime_core.tools.ledger import CallRecord
from runtime_core.tools.registry import Tool
from runtime_core.transactions import one_commit
from runtime_core.values import SYSTEM, Audit, ToolOutcome, Usage

_OPEN = (CallStatus.AWAITING_APPROVAL, CallStatus.APPROVED, CallStatus.EXECUTING)
_NAME_CHARS = 80


def with_children(calls: Sequence[CallRecord], tools: Mapping[str, Tool]) -> list[CallRecord]:
    """The calls, each with the run that still works on it, as the database has it."""
    handed = [call for call in calls if _is_handed_on(call, tools)]
    if not handed:
        return list(calls)
    live = dict(
        Run.objects.filter(
            parent_call__in=[call.id for call in handed], ended_at__isnull=True
        ).values_list("parent_call", "id")
    )
    return [call.evolve(awaits=live.get(call.id)) for call in calls]


def of(call: CallRecord) -> Run | None:
    """The run that works, or has worked, on this call."""
    return Run.objects.select_related("agent").filter(parent_call=call.id).first()


def start(work: Work, call: CallRecord) -> Run:
    """The run that works on this call, now started. ToolFailed says why none can be.

    The parent's row is locked and its lease checked: a worker that lost the run starts nothing, and two start one.
    """
    with one_commit("child"):
        parent = Run.objects.select_for_update().get(id=work.run_id)
        if parent.lease_epoch != work.claim.epoch or parent.state is not RunStatus.RUNNING:
            raise Fenced()
        known = of(call)
        if known is not None:
            return known
        version = _version(work, call)
        _check_family(parent)
        child = _insert(work, parent, call, version)
        seq = new_run.announce_created(child)
        ports.audit().record([_started(parent, child, version)])
    announce(child.id, seq, child.project_id)
    return child


def outcome_of(child: Run) -> ToolOutcome:
    """What the end of a child is to the call that it worked on."""
    if child.state is RunStatus.COMPLETED:
        return ToolOutcome("succeeded", child.output or "")
    why = (child.error or {}).get("message", "")
    said = f"The run of {child.agent.name} is {child.status.replace('_', ' ')}. {why}".strip()
    return ToolOutcome("failed", {"error": said}, error_code=f"child_{child.status}")


def usage_of(child: Run) -> Usage:
    """What a child has spent, its own children included: its parent has spent that too."""
    return Usage(child.input_tokens, child.output_tokens, child.cost_microusd)


def _is_handed_on(call: CallRecord, tools: Mapping[str, Tool]) -> bool:
    tool = tools.get(call.tool)
    return call.status is CallStatus.EXECUTING and tool is not None and tool.delegates


def _version(work: Work, call: CallRecord) -> AgentVersion:
    """The agent that the call names: one of those that this agent may hand work to, in the same project."""
    name = str(call.args.get("agent", ""))
    allowed = work.definition.get("agents", [])
    found = (
        Agent.objects.select_related("current")
        .filter(project_id=work.run.project_id, name=name)
        .first()
        if name in allowed
        else None
    )
    if found is None or found.current is None:
        shown = storable_text(name)[:_NAME_CHARS]
        raise ToolFailed(
            f"There is no agent {shown!r} to hand work to; there are: {_list(allowed)}."
        )
    return found.current


def _check_family(parent: Run) -> None:
    if parent.cancel_requested_at is not None:
        raise ToolFailed("The run is being cancelled.")
    if len(parent.path) >= limits().child_depth:
        raise ToolFailed(
            f"Work is handed on at most {limits().child_depth} times; do this yourself."
        )
    children = Run.objects.filter(parent=parent, parent_call__isnull=False).count()
    if children >= limits().children_per_run:
        raise ToolFailed(
            f"This run has handed on {children} tasks, which is the most; do the rest yourself."
        )


def _insert(work: Work, parent: Run, call: CallRecord, version: AgentVersion) -> Run:
    bounds = _bounds(work, parent, version)
    thread = Thread.objects.create(project_id=parent.project_id, created_by_id=parent.created_by_id)
    task = clip(storable_text(str(call.args["task"])), limits().input_bytes)[0]
    child = new_run.insert(
        version,
        thread,
        task,
        bounds,
        created_by=parent.created_by_id,
        parent=parent,
        parent_call=call.id,
        priority=parent.priority,
        path=[*parent.path, [work.run.agent.name, storable_text(call.call_id)]],
    )
    new_run.say(child, task)
    return child


def _bounds(work: Work, parent: Run, version: AgentVersion) -> RequestedLimits:
    """What its agent may spend, at most this call's share of what the parent has left."""
    own = requested(version.definition.get("limits", {}))
    left, seconds = _left(parent, work.calls), _seconds_left(parent)
    todo = max(1, sum(1 for call in work.calls if _may_still_start(call, work.tools)))
    share = replace(left, max_tokens=left.max_tokens // todo, max_cost=left.max_cost // todo)
    nothing = share.max_cost < 1 and own.max_cost_microusd > 0
    if share.max_tokens < 1 or left.steps < 1 or seconds < 1 or nothing:
        raise ToolFailed("What this run may still spend does not suffice for another agent's work.")
    return RequestedLimits(
        max_steps=min(own.max_steps, left.steps),
        max_tokens=min(own.max_tokens, share.max_tokens),
        max_cost_microusd=min(own.max_cost_microusd, share.max_cost),
        deadline_s=min(own.deadline_s, seconds),
    )


@dataclass(frozen=True, slots=True)
class _Left:
    """What a parent has to give away."""

    steps: int
    max_tokens: int
    max_cost: int


def _left(parent: Run, calls: Iterable[CallRecord]) -> _Left:
    """What the parent has not spent and not promised to a child whose answer it has not taken yet."""
    handed = [call.id for call in calls if call.status is CallStatus.EXECUTING]
    tokens = parent.max_tokens - parent.input_tokens - parent.output_tokens
    cost = parent.max_cost_microusd - parent.cost_microusd
    for child in Run.objects.filter(parent_call__in=handed):
        used = child.input_tokens + child.output_tokens
        tokens -= used if child.state.ended else max(used, child.max_tokens)
        cost -= (
            child.cost_microusd
            if child.state.ended
            else max(child.cost_microusd, child.max_cost_microusd)
        )
    return _Left(parent.max_steps - parent.steps, max(0, tokens), max(0, cost))


def _seconds_left(parent: Run) -> int:
    """Until the parent's deadline, by the database's clock."""
    until = ExpressionWrapper(F("deadline_at") - Now(), output_field=DurationField())
    left = Run.objects.filter(id=parent.id).values_list(until, flat=True).get()
    return parent.deadline_s if left is None else math.floor(left.total_seconds())


def _may_still_start(call: CallRecord, tools: Mapping[str, Tool]) -> bool:
    tool = tools.get(call.tool)
    return bool(tool and tool.delegates) and call.status in _OPEN and call.awaits is None


def _started(parent: Run, child: Run, version: AgentVersion) -> Audit:
    return Audit(
        "run.started",
        SYSTEM,
        "run",
        str(child.id),
        project_id=child.project_id,
        run_id=child.id,
        data={
            "agent": version.agent.name,
            "agent_version": version.number,
            "parent": str(parent.id),
            "parent_call": str(child.parent_call),
        },
    )


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"

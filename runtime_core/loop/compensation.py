"""Taking back what a run did: a run of its own, with one call for each effect, the last effect first.

It is an ordinary run: claimed, fenced, its intents stored before its effects; a crash in it is recovered as any other
and asks a person where nobody knows. When a call of it has succeeded, the call that it undoes is `compensated` in the
same commit. The run that is undone stays as it ended.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import F
from pydantic_ai.messages import ModelResponse, ToolCallPart

from runtime_core import clock, new_run, ports
from runtime_core.checkpoints import snapshot
from runtime_core.checkpoints.recover import Facts, Strategy, strategy
from runtime_core.errors import IllegalTransition, OutcomeUnknown
from runtime_core.events.publish import announce
from runtime_core.gateway import messages as wire
from runtime_core.ids import new_id
from runtime_core.models import Checkpoint, Message, Run, Thread, ToolCall
from runtime_core.run_limits import requested
from runtime_core.sanitize import canonical, clip
from runtime_core.states import CallStatus, CheckpointReason, RunStatus
from runtime_core.tools import ledger, registry
from runtime_core.transactions import one_commit
from runtime_core.values import SYSTEM, Actor, Audit, Effect

BATCH = 50
MOST_CALLS = 500
_ENDED_BADLY = (RunStatus.FAILED.value, RunStatus.CANCELLED.value, RunStatus.TIMED_OUT.value)
_TOLD = 50
_LASTING = (Effect.ONCE.value, Effect.COMPENSATABLE.value, Effect.IDEMPOTENT.value)
_MAY_HAVE_HAPPENED = (
    CallStatus.EXECUTING.value,
    CallStatus.SUCCEEDED.value,
    CallStatus.UNKNOWN.value,
    CallStatus.COMPENSATED.value,
)


@dataclass(frozen=True, slots=True)
class Outlook:
    """What of a run's effects stays, what can be taken back, and what has been; the last effect first."""

    stays: Sequence[ToolCall]
    can_undo: Sequence[ToolCall]
    undone: Sequence[ToolCall]
    by: uuid.UUID | None = None
    """The run that takes them back, or was the last to."""


def outlook(run: Run) -> Outlook:
    """What became of the run's effects, and what still can."""
    calls = _lasting(run)
    done = [call for call in calls if call.status == CallStatus.COMPENSATED.value]
    able = [call for call in calls if _can_be_taken_back(call)]
    by = Run.objects.filter(undoes=run).order_by("-created_at").values_list("id", flat=True).first()
    return Outlook([c for c in calls if c not in done and c not in able], able, done, by)


def begin(run: Run, actor: Actor) -> Run:
    """The run that takes back what `run`, whose row the caller has locked, did; pending, in the caller's transaction.

    IllegalTransition if it has not ended, if that is under way, or if there is nothing that can be taken back.
    """
    if not run.state.ended:
        raise IllegalTransition(
            "The run goes on: cancel it first, then take back what it did.", status=run.status
        )
    if Run.objects.filter(undoes=run, ended_at__isnull=True).exists():
        raise IllegalTransition("Its effects are being taken back already.", status=run.status)
    calls = [call for call in _lasting(run) if _can_be_taken_back(call)]
    if not calls:
        raise IllegalTransition("Nothing that this run did can be taken back.", status=run.status)
    made = _insert(run, calls, actor)
    Run.objects.filter(id=run.id).update(compensation="begun")
    tools = [call.tool for call in calls]
    ports.audit().record([_audit(run, actor, made, tools)])
    return made


def begin_due() -> list[Run]:
    """Begin for every run that ended badly and whose agent wants its effects taken back then."""
    due = Run.objects.filter(compensation="due", status__in=_ENDED_BADLY).values_list(
        "id", flat=True
    )
    return [made for run_id in list(due[:BATCH]) if (made := _begin_one(run_id))]


def news_of(thread: Thread) -> str:
    """What was taken back since the thread's last message, for the model to read; empty if nothing was."""
    last = Message.objects.filter(thread=thread).order_by("-position").values("created_at")[:1]
    calls = ToolCall.objects.filter(
        run__thread=thread,
        status=CallStatus.COMPENSATED.value,
        undone_by__status=CallStatus.SUCCEEDED.value,
        undone_by__ended_at__gt=last,
    ).order_by("started_at")[:_TOLD]
    done = [f"{call.tool} {clip(canonical(call.args_redacted), 300)[0]}" for call in calls]
    return f"[Since then this was taken back, and holds no more: {'; '.join(done)}]" if done else ""


def refuse_retry(run: Run) -> None:
    """IllegalTransition if what the run did was taken back, or is being: it would go on from what is no more."""
    undone = ToolCall.objects.filter(run=run, status=CallStatus.COMPENSATED.value).exists()
    if undone or Run.objects.filter(undoes=run, ended_at__isnull=True).exists():
        raise IllegalTransition(
            "What this run did was taken back, so it cannot go on from there; start a new one.",
            status=run.status,
        )
    if run.undoes_id:
        raise IllegalTransition(
            "Ask the run that it takes back once more; only what is left is tried again.",
            status=run.status,
        )


def _begin_one(run_id: uuid.UUID) -> Run | None:
    with one_commit("compensate_due"):
        run = Run.objects.select_for_update().get(id=run_id)
        if run.compensation != "due" or run.status not in _ENDED_BADLY:
            return None
        try:
            made = begin(run, SYSTEM)
        except IllegalTransition:
            Run.objects.filter(id=run_id).update(compensation="begun")  # there is nothing to do
            return None
    announce(made.id, made.last_seq, made.project_id, inbox=False)
    return made


def _lasting(run: Run) -> list[ToolCall]:
    """The run's calls that changed something or may have, the last one first."""
    calls = ToolCall.objects.filter(run=run, undoes=None, effect__in=_LASTING)
    rows = calls.order_by(F("started_at").desc(nulls_last=True), "-step", "-position")
    return [
        row
        for row in rows[:MOST_CALLS]
        if row.status in _MAY_HAVE_HAPPENED or row.error_code == OutcomeUnknown.code
    ]


def _can_be_taken_back(call: ToolCall) -> bool:
    tool = registry().get(call.tool)
    facts = Facts(
        CallStatus(call.status),
        Effect(call.effect),
        tool.spec.effect if tool else None,
        taking_back=True,
        outcome_unknown=call.error_code == OutcomeUnknown.code,
    )
    return strategy(facts) is Strategy.COMPENSATE


def _insert(run: Run, calls: Sequence[ToolCall], actor: Actor) -> Run:
    version = run.agent_version
    owner = actor.user_id or run.created_by_id
    thread = Thread.objects.create(project_id=run.project_id, created_by_id=owner)
    bounds = requested({"max_steps": min(3 * len(calls) + 10, 1_000)})
    text = f"Take back what {run.title} did: {', '.join(call.tool for call in calls)}"
    made = new_run.insert(version, thread, text, bounds, created_by=owner, undoes=run, next_step=1)
    new_run.say(made, text)
    _plan(made, calls)
    made.last_seq = new_run.announce_created(made)
    return made


def _plan(made: Run, calls: Sequence[ToolCall]) -> None:
    """Its calls, as if a model had asked for them in its first step, and a checkpoint to go on from."""
    rows = [_row(made, call, position) for position, call in enumerate(calls)]
    asked = [ToolCallPart(row.tool, row.args_text, row.call_id) for row in rows]
    said = canonical(wire.dump(ModelResponse(parts=asked, timestamp=clock.now())))
    Message.objects.create(thread_id=made.thread_id, position=1, run=made, step=0, body=said)
    ToolCall.objects.bulk_create(rows)
    bodies = [m.body for m in Message.objects.filter(run=made).order_by("position")]
    point = snapshot.row(
        step=0,
        reason=CheckpointReason.PLAN.value,
        messages=len(bodies),
        rolling=snapshot.extend(snapshot.EMPTY_DIGEST, bodies),
        state={"next_step": 1, "steps": 0, "cut": 0},
    )
    Checkpoint.objects.create(run=made, epoch=0, **point)


def _row(made: Run, call: ToolCall, position: int) -> ToolCall:
    """The call that undoes one: its key is its own, and stays through every retry and recovery of it."""
    tool = registry()[call.tool]
    before = ToolCall.objects.filter(undoes=call).count()  # tries that failed for sure
    return ToolCall(
        id=new_id(),
        run=made,
        step=0,
        position=position,
        call_id=f"undo_{position}",
        tool=call.tool,
        effect=tool.compensate_effect.value,
        risk=call.risk,
        status=CallStatus.APPROVED.value,
        args_text=call.args_text,
        args_digest=call.args_digest,
        args_redacted=call.args_redacted,
        schema_digest=tool.spec.digest,
        idempotency_key=ledger.digest_of(f"{call.idempotency_key}/undo/{before}"),
        verdict_reason=f"Takes back {call.tool}.",
        undoes=call,
    )


def _audit(run: Run, actor: Actor, made: Run, tools: Sequence[str]) -> Audit:
    return Audit(
        "run.compensated",
        actor,
        "run",
        str(run.id),
        project_id=run.project_id,
        run_id=run.id,
        data={"by": str(made.id), "tools": list(tools), "status": run.status},
    )

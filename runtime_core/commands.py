"""What the outside may ask of runs, threads and agents: the only write door of the runtime.

Callers have checked that the actor may see the project; here is checked what the state allows. Each command is one
transaction with its events and its audit entry; workers are woken after the commit.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone
from pydantic_ai.messages import ModelResponse

from runtime_core import agents, new_run, ports, run_limits, scope, transitions
from runtime_core.checkpoints import snapshot
from runtime_core.checkpoints import store as checkpoints
from runtime_core.errors import (
    IllegalTransition,
    InvalidInput,
    NotFound,
    ThreadBusy,
)
from runtime_core.events.publish import announce
from runtime_core.gateway import messages as wire
from runtime_core.limits import limits
from runtime_core.loop import budget, compensation, control, stopping
from runtime_core.models import Agent, Checkpoint, Message, Project, Run, Step, Thread, ToolCall
from runtime_core.run_limits import RequestedLimits, requested
from runtime_core.sanitize import canonical, storable, storable_text
from runtime_core.scheduling import queue
from runtime_core.scheduling.wake import wake_run
from runtime_core.states import CallStatus, CheckpointReason, RunStatus
from runtime_core.tools import ledger
from runtime_core.transactions import one_commit
from runtime_core.values import Actor, Audit, Json, RunLimits, Usage

NOT_IN_FORK = "Not executed: the run was forked before it ran."

apply_agent = agents.apply_agent


def create_thread(
    actor: Actor, project: Project, metadata: Mapping[str, Json] | None = None
) -> Thread:
    """A new conversation."""
    with scope.within(project.id):
        shown = ports.redactor().redact(_metadata(metadata)).value
    return Thread.objects.create(project=project, created_by_id=_person(actor), metadata=shown)


def start_run(
    actor: Actor,
    *,
    project: Project,
    agent: str,
    input: str,
    thread_id: uuid.UUID | None = None,
    limits: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Json] | None = None,
    priority: int = 0,
) -> Run:
    """Queue a run. NotFound: no such agent or thread; InvalidInput; ThreadBusy; Backpressure."""
    text = _input(input)
    chosen = Agent.objects.select_related("current").filter(project=project, name=agent).first()
    if chosen is None or chosen.current is None:
        raise NotFound(
            f"There is no agent {storable_text(agent)[:60]!r} in this project.", field="agent"
        )
    bounds = requested({**chosen.current.definition.get("limits", {}), **(limits or {})})
    clean, urgency = _metadata(metadata), run_limits.priority(priority)
    queue.refuse_when_full(project.id)
    with one_commit("start"):
        thread = _thread(actor, project, thread_id)
        run = new_run.insert(
            chosen.current,
            thread,
            text,
            bounds,
            created_by=_person(actor),
            metadata=clean,
            priority=urgency,
        )
        news = compensation.news_of(thread) if thread_id else ""
        if news:
            new_run.say(run, news)
        new_run.say(run, text)
        seq = new_run.announce_created(run)
        _audit("run.started", actor, run, agent=agent, agent_version=chosen.current.number)
    return _after(run, seq, due=True)


def cancel_run(actor: Actor, run: Run) -> Run:
    """Ask for the end of a run; one that nobody holds ends at once. IllegalTransition if it has ended."""
    with one_commit("cancel"):
        locked = _locked(run)
        if locked.state.ended:
            raise IllegalTransition(
                f"The run has ended already: it is {locked.status}.", status=locked.status
            )
        if locked.cancel_requested_at is None:
            _audit("run.cancelled", actor, locked, status=locked.status)
        stopping.stop(locked, actor)
    return _now(run)


def force_stop(actor: Actor, run: Run) -> Run:
    """End a run that was asked to stop and does not. IllegalTransition if it was not asked, or only just."""
    seconds = limits().force_stop_after_seconds
    asked = Run.objects.filter(cancel_requested_at__lte=Now() - timedelta(seconds=seconds))
    with one_commit("force"):
        locked = _locked(run)
        if locked.state.ended:
            raise IllegalTransition(
                f"The run has ended already: it is {locked.status}.", status=locked.status
            )
        if not asked.filter(id=run.id).exists():
            raise IllegalTransition(
                f"Cancel the run first; only what has not stopped {seconds} s later is stopped by force.",
                status=locked.status,
            )
        _audit("run.forced", actor, locked, status=locked.status)
        stopping.force(locked, actor)
    return _now(run)


def pause_run(actor: Actor, run: Run) -> Run:
    """Ask a run to pause before its next step. IllegalTransition if it waits for a person or has ended."""
    with one_commit("pause"):
        locked = _locked(run)
        if locked.state is RunStatus.RUNNING:
            Run.objects.filter(id=run.id).update(pause_requested_at=timezone.now())
            seq = locked.last_seq
        else:
            told = checkpoints.mark(run.id, CheckpointReason.PAUSE)
            seq = transitions.move(run.id, RunStatus.PAUSED, "pause", events=told)
        _audit("run.paused", actor, locked, status=locked.status)
    transaction.on_commit(lambda: control.signal(run.id))
    return _after(run, seq)


def resume_run(actor: Actor, run: Run, limits: Mapping[str, Any] | None = None) -> Run:
    """Set a paused run going again, with more to spend if `limits` says so (new totals, not additions)."""
    with one_commit("resume"):
        locked = _locked(run)
        bounds = requested({**limits_json(locked), **(limits or {})})
        seq = transitions.move(run.id, RunStatus.PENDING, "resume")
        _refuse_spent(locked, bounds)
        more = timedelta(seconds=bounds.deadline_s - locked.deadline_s)
        Run.objects.filter(id=run.id).update(
            max_steps=bounds.max_steps,
            max_tokens=bounds.max_tokens,
            max_cost_microusd=bounds.max_cost_microusd,
            deadline_s=bounds.deadline_s,
            deadline_at=F("deadline_at") + more,
            error=None,
        )
        _audit("run.resumed", actor, locked, limits=dict(limits or {}))
    return _after(run, seq, due=True)


def _refuse_spent(run: Run, bounds: RequestedLimits) -> None:
    """A run whose budget is spent would only pause again."""
    allowed = RunLimits(
        bounds.max_steps, bounds.max_tokens, bounds.max_cost_microusd / 1e6, bounds.deadline_s
    )
    used = Usage(run.input_tokens, run.output_tokens, run.cost_microusd)
    spent = budget.spent(allowed, run.steps, used)
    if spent:
        raise InvalidInput(f"limits: {spent} Give a higher total to go on.", field="limits")


def retry_run(actor: Actor, run: Run) -> Run:
    """Set a failed or timed-out run going again from its last checkpoint, as its next attempt."""
    try:
        with one_commit("retry"):
            locked = _locked(run)
            _refuse_answered_child(locked)
            compensation.refuse_retry(locked)
            seq = transitions.move(run.id, RunStatus.PENDING, "retry", new_attempt=True)
            new_run.want_compensation(locked)
            _audit("run.retried", actor, run, attempt=run.attempt + 1)
    except IntegrityError:
        raise ThreadBusy() from None
    return _after(run, seq, due=True)


def compensate_run(actor: Actor, run: Run) -> Run:
    """Take back what a run that has ended did, as far as that is possible: a new run, last effect first.

    IllegalTransition if the run goes on, if that is under way already, or if there is nothing to take back.
    """
    _person(actor)
    with one_commit("compensate"):
        locked = _locked(run)
        made = compensation.begin(locked, actor)
    return _after(made, made.last_seq, due=True)


def _refuse_answered_child(run: Run) -> None:
    """A child whose call has its answer cannot take it back; its parent may have acted on it."""
    if run.parent_call is None:
        return
    waits = ToolCall.objects.filter(id=run.parent_call, status=CallStatus.EXECUTING.value)
    if not waits.exists():
        raise IllegalTransition(
            "The run that asked for this one has gone on without it; fork it instead."
        )


def fork_run(
    actor: Actor, run: Run, checkpoint_id: uuid.UUID, changes: Mapping[str, Any] | None = None
) -> Run:
    """A new run in a new thread that goes on from a checkpoint of `run`, with `changes`: `input`, `limits`."""
    changes = dict(changes or {})
    unknown = set(changes) - {"input", "limits"}
    if unknown:
        raise InvalidInput(
            f"changes: {', '.join(sorted(unknown))} cannot be changed; input and limits can."
        )
    checkpoint = Checkpoint.objects.filter(id=checkpoint_id, run=run).first()
    if checkpoint is None:
        raise NotFound("This run has no such checkpoint.", field="checkpoint_id")
    snapshot.verify(checkpoint, _bodies(run, checkpoint.messages))
    version = run.agent_version
    if version.definition.get("engine") == "graph":
        # It would begin at its start again, and so repeat what was done before the checkpoint.
        raise IllegalTransition("The run of a graph cannot be forked; start a new one.")
    bounds = requested({**limits_json(run), **(changes.get("limits") or {})})
    text = _input(changes["input"]) if "input" in changes else None
    with one_commit("fork"):
        _locked(run)  # it may be about to be deleted, with all that comes of it
        thread = Thread.objects.create(project=run.project, created_by_id=_person(actor))
        fork = new_run.insert(
            version, thread, text or run.input, bounds, created_by=_person(actor), parent=run
        )
        _copy_messages(run, checkpoint, fork)
        if text is not None:
            new_run.say(fork, text)
        seq = new_run.announce_created(fork)
        _audit("run.forked", actor, fork, source=str(run.id), checkpoint=str(checkpoint_id))
    return _after(fork, seq, due=True)


def pin_checkpoint(actor: Actor, run: Run, checkpoint_id: uuid.UUID, pinned: bool) -> Checkpoint:
    """Keep a checkpoint from housekeeping, or let it go. NotFound; InvalidInput if too many are pinned."""
    with one_commit("pin"):
        _locked(run)
        found = Checkpoint.objects.filter(id=checkpoint_id, run=run).first()
        if found is None:
            raise NotFound("This run has no such checkpoint.", field="checkpoint_id")
        if found.pinned == pinned:
            return found
        most = limits().checkpoint_pins_per_run
        if pinned and Checkpoint.objects.filter(run=run, pinned=True).count() >= most:
            raise InvalidInput(f"At most {most} checkpoints of a run are pinned; let one go first.")
        found.pinned = pinned
        found.save(update_fields=["pinned"])
        action = "checkpoint.pinned" if pinned else "checkpoint.unpinned"
        _audit(action, actor, run, checkpoint=str(checkpoint_id), step=found.step)
    return found


def limits_json(run: Run) -> dict[str, Json]:
    """What a run may spend, in the words of the API."""
    return {
        "max_steps": run.max_steps,
        "max_tokens": run.max_tokens,
        "max_cost_usd": run.max_cost_microusd / 1e6,
        "deadline_s": run.deadline_s,
    }


def _bodies(run: Run, count: int) -> list[str]:
    """The texts of the run's first messages, in order."""
    return [m.body for m in Message.objects.filter(run=run).order_by("position")[:count]]


def _copy_messages(source: Run, checkpoint: Checkpoint, fork: Run) -> None:
    """The conversation up to the checkpoint, cut where a turn is whole: the model goes on from there."""
    first = Message.objects.filter(run=source).order_by("position").first()
    before = Message.objects.filter(thread_id=source.thread_id)
    if first is not None:
        own = list(Message.objects.filter(run=source).order_by("position")[: checkpoint.messages])
        kept = [m.body for m in before.filter(position__lt=first.position).order_by("position")]
        kept += [m.body for m in own]
        if own and isinstance(wire.load(json.loads(own[-1].body)), ModelResponse):
            results = _results_by(checkpoint, own[-1].step)
            kept = [*kept, results] if results else kept[:-1]
    else:
        kept = [m.body for m in before.order_by("position")]
    Message.objects.bulk_create(
        Message(thread_id=fork.thread_id, position=n, run=fork, step=-1, body=body)
        for n, body in enumerate(kept)
    )


def _results_by(checkpoint: Checkpoint, step: int) -> str | None:
    """What the turn's calls had come to by the checkpoint: what ran is told, lest it is done again.

    None if none had run yet: then the model is asked anew.
    """
    if checkpoint.step == step and checkpoint.reason == CheckpointReason.PLAN:
        return None
    rows = list(ToolCall.objects.filter(run=checkpoint.run_id, step=step).order_by("position"))
    calls = [ledger.record_of(row) for row in rows]
    had_ended = _ended_by(checkpoint, rows, step)
    if not any(had_ended):
        return None
    told = [
        ledger.told(call) if ended else (call.call_id, call.tool, NOT_IN_FORK, "failed")
        for call, ended in zip(calls, had_ended, strict=True)
    ]
    return canonical(wire.dump(wire.tool_results(told)))  # type: ignore[arg-type]


def _ended_by(checkpoint: Checkpoint, calls: list[ToolCall], step: int) -> list[bool]:
    """Which of a turn's calls had ended when the checkpoint was saved: by a step, or by a person's answer."""
    ran = dict(
        Step.objects.filter(run=checkpoint.run_id, kind="tool", index__gt=step)
        .filter(detail__call_id__in=[call.call_id for call in calls])
        .order_by("index")
        .values_list("detail__call_id", "index")
    )
    return [
        call.ended_at is not None
        and (
            ran[call.call_id] <= checkpoint.step
            if call.call_id in ran
            else call.ended_at <= checkpoint.created_at
        )
        for call in calls
    ]


def _thread(actor: Actor, project: Project, thread_id: uuid.UUID | None) -> Thread:
    if thread_id is None:
        return Thread.objects.create(project=project, created_by_id=_person(actor))
    thread = Thread.objects.select_for_update().filter(id=thread_id, project=project).first()
    if thread is None:
        raise NotFound("There is no such thread in this project.", field="thread_id")
    return thread


def _input(text: str) -> str:
    if not isinstance(text, str) or not text.strip():
        raise InvalidInput("input: say what the agent should do.", field="input")
    clean = storable_text(text)
    if len(clean.encode()) > limits().input_bytes:
        raise InvalidInput(
            f"input: {len(clean.encode())} bytes are too many; at most {limits().input_bytes}.",
            field="input",
        )
    return clean


def _metadata(metadata: Mapping[str, Json] | None) -> dict[str, Json]:
    clean = storable(dict(metadata or {}))
    if len(canonical(clean).encode()) > limits().metadata_bytes:
        raise InvalidInput(f"metadata: at most {limits().metadata_bytes} bytes.", field="metadata")
    return dict(clean)


def _person(actor: Actor) -> int:
    if actor.user_id is None:
        raise InvalidInput("A run needs a person who asks for it.")
    return actor.user_id


def _audit(action: str, actor: Actor, run: Run, **data: Json) -> None:
    ports.audit().record(
        [
            Audit(
                action,
                actor,
                "run",
                str(run.id),
                project_id=run.project_id,
                run_id=run.id,
                data=data,
            )
        ]
    )


def _after(run: Run, seq: int, *, due: bool = False, inbox: bool = False) -> Run:
    """Tell those who watch, wake a worker if the run is due, and read the run as it is now."""
    # The caller may be in a transaction of its own: who is told earlier would look too early.
    if due:
        wake_run(run.id)
    transaction.on_commit(lambda: announce(run.id, seq, run.project_id, inbox=inbox))
    return _now(run)


def _locked(run: Run) -> Run:
    found = Run.objects.select_for_update().filter(id=run.id).first()
    if found is None:
        raise NotFound("There is no such run any more.")
    return found


def _now(run: Run) -> Run:
    """The run as it is now."""
    return Run.objects.select_related("agent", "agent_version", "created_by").get(id=run.id)

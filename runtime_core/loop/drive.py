"""Drives one claimed run, step by step, until it ends, must wait, or is no longer ours.

claim → restore → (decide → authorise → perform → save → outcome)* → let go
"""

from __future__ import annotations

import uuid

import structlog
from django.db import Error as DatabaseError
from django.db import InterfaceError, OperationalError, connection

from runtime_core import clock, ports, scope, transitions
from runtime_core.engines.port import AskModel, Move, RunCall, RunNode
from runtime_core.errors import Fenced, InterlockError, StateUnusable, WorkerLost
from runtime_core.events.publish import announce, announce_soon
from runtime_core.limits import limits
from runtime_core.loop import (
    budget,
    model_step,
    node_step,
    parked,
    restore,
    spans,
    stopping,
    tool_step,
)
from runtime_core.loop.continuation import ended_audit, follow
from runtime_core.loop.control import Hold, watch
from runtime_core.loop.ending import end
from runtime_core.loop.outcome import Go, Outcome, Stop, target
from runtime_core.loop.work import Work
from runtime_core.models import Run
from runtime_core.states import PARKED, CallStatus, RunStatus
from runtime_core.tools import ledger
from runtime_core.tracing import ended_run_span, run_span
from runtime_core.transitions import StepCommit
from runtime_core.values import Claim, Json

log = structlog.get_logger(__name__)


def advance(worker: str, run_id: uuid.UUID | None = None) -> bool:
    """Claim one run (that one, if given) and drive it; False if there was none to claim."""
    if watch.shutting_down:
        return False
    claimed = transitions.claim(worker, run_id)
    if claimed is None:
        return False
    claim, _ = claimed
    about = {"run": str(claim.run_id), "epoch": claim.epoch}
    with structlog.contextvars.bound_contextvars(**about), watch.held(claim) as hold:
        _drive_safely(claim, hold)
    return True


def _drive_safely(claim: Claim, hold: Hold) -> None:
    """Nothing that goes wrong here loses the run: what cannot be written now does who claims it after the lease."""
    try:
        drive(claim, hold)
    except Fenced:
        log.warning("run.fenced")
        _abandon_spans(claim)
    except (OperationalError, InterfaceError) as error:
        log.error("run.database", error=type(error).__name__)
        connection.close()
    except Exception:
        # A statement that the database refuses is a defect too: the next worker would meet it again.
        log.exception("run.broken")
        connection.close()
        _fail_broken(claim)


def _abandon_spans(claim: Claim) -> None:
    """Spans that this worker opened stay without end: the trace shows that somebody else went on."""
    try:
        ports.spans().abandon(claim.run_id, claim.epoch + 1)
    except DatabaseError as error:
        log.warning("run.spans", error=type(error).__name__)


def drive(claim: Claim, hold: Hold) -> None:
    """Take steps until the outcome is that this worker no longer holds the run."""
    run = restore.load_run(claim)
    with scope.within(run.project_id, run.agent_id):
        _drive_loaded(claim, hold, run)


def _drive_loaded(claim: Claim, hold: Hold, run: Run) -> None:
    announce_soon(run.id, run.last_seq, run.project_id, inbox=False)
    ports.spans().write([run_span(run, claim.epoch)])
    try:
        _refuse_crash_loop(run)
        began_at = clock.now()
        work = restore.restore(claim, run)
    except InterlockError as error:
        _stop_unrestored(claim, run, error)
        return
    if run.steps:
        spans.restored(work, began_at)
    outcome: Outcome = Go()
    while isinstance(outcome, Go):
        outcome = _step(work, hold)
    _let_go(work, outcome)


def _refuse_crash_loop(run: Run) -> None:
    if run.claims_without_progress > limits().max_claims_without_progress:
        raise WorkerLost()


def _step(work: Work, hold: Hold) -> Outcome:
    move = work.engine.next_move(work.view)
    stop = _wish(work, hold)
    if stop and not (_is_intended(work, move) and stop != Stop("lost")):
        return stop
    match move:
        case AskModel() | RunNode() if _turn_is_over(work):
            return Stop("turn")
        case AskModel():
            return model_step.take(work, hold)
        case RunNode():
            return node_step.take(work, hold, move)
        case RunCall(call) if call.status is CallStatus.APPROVED and (spent := _spent(work)):
            return Stop("budget", spent)
        case RunCall(call):
            return tool_step.take(work, hold, call)
        case _:
            return _settle(work)


def _is_intended(work: Work, move: Move) -> bool:
    """True if the last commit says that this call executes: so it does, or is cancelled for sure; never in doubt."""
    if not isinstance(move, RunCall) or move.call.status is not CallStatus.EXECUTING:
        return False
    tool = work.tools.get(move.call.tool)
    return move.call.epoch == work.claim.epoch and not (tool and tool.delegates)


def _spent(work: Work) -> str | None:
    return budget.spent(work.limits, work.steps, work.usage)


def _turn_is_over(work: Work) -> bool:
    """True if others wait for a slot and this run has come on and had one for long; asked where nothing is begun."""
    had_long = clock.monotonic() - work.began_at > limits().turn_seconds
    return watch.crowded and had_long and work.steps > work.run.steps


def _wish(work: Work, hold: Hold) -> Stop | None:
    """What somebody wants of the run, between two steps."""
    if work.seen.cancel_requested:
        hold.end("cancel")
    if hold.reason:
        return Stop(hold.reason)
    if hold.pause or work.seen.pause_requested:
        return Stop("pause", "An operator paused the run.")
    return None


def _settle(work: Work) -> Outcome:
    """A recovered run whose next move is to ask or to end: the commit that its lost worker did not make."""
    after = follow(work, work.calls, work.output)
    known = {call.id: call for call in work.calls}
    work.commit(
        StepCommit(
            to=after.to,
            cause=after.cause,
            next_step=work.next_step,
            changed_calls=[
                ledger.changed_row(known[c.id], c) for c in after.calls if c != known[c.id]
            ],
            interrupts=after.interrupts,
            events=after.events,
            audits=after.audits,
            spans=after.spans,
            available_in=after.available_in,
            output=after.output,
            error=after.error,
        )
    )
    return after.outcome


def _let_go(work: Work, outcome: Outcome) -> None:
    match outcome:
        case Stop("lost"):
            raise Fenced()
        case Stop("shutdown" | "turn" as cause):
            seq = transitions.release(work.claim, "turn" if cause == "turn" else "released")
            if seq is not None:
                announce(work.run_id, seq, work.run.project_id, inbox=False)
            return
        case Stop() if _status(work) is RunStatus.RUNNING:
            end(work, outcome)
        case _:
            pass
    status, _ = target(outcome)
    if any(call.awaits for call in work.calls):
        # Whether the run ended or waits is up to its children: one may have ended just before it began to wait.
        stopping.wake_parent(work.run_id)
        status = _status(work)
    if work.seen.cancel_requested and status in PARKED and parked.finish_cancel(work.run_id):
        status = RunStatus.CANCELLED
    if status.ended:
        _ended(work.run, work.claim, status)


def _status(work: Work) -> RunStatus:
    return RunStatus(Run.objects.values_list("status", flat=True).get(id=work.run_id))


def _ended(run: Run, claim: Claim, status: RunStatus) -> None:
    """The trace has its end, and whoever waits for the run goes on."""
    ports.spans().write([ended_run_span(run, status, claim.epoch)])
    if run.is_child and run.parent_id:
        stopping.wake_parent(run.parent_id)


def _stop_unrestored(claim: Claim, run: Run, error: InterlockError) -> None:
    """The run's state or workspace cannot be used: it stops where a person sees it, and nothing is restarted."""
    if isinstance(error, StateUnusable):
        # Paused, not failed: it holds its thread, and mending what is stored lets it go on from where it was.
        sound = restore.sound_checkpoint(run)
        _let_go_unrestored(claim, run, RunStatus.PAUSED, "unusable", error, sound_checkpoint=sound)
        return
    cause = "worker_lost" if isinstance(error, WorkerLost) else "error"
    _let_go_unrestored(claim, run, RunStatus.FAILED, cause, error)
    _ended(run, claim, RunStatus.FAILED)


def _let_go_unrestored(
    claim: Claim, run: Run, to: RunStatus, cause: str, error: InterlockError, **more: Json
) -> None:
    seen = transitions.Seen(run.version, run.last_seq, False, False)
    message = ports.redactor().text(error.message)
    stopped = {"code": error.code, "message": message, "retryable": True, **more}
    seen = transitions.commit_step(
        claim,
        seen,
        StepCommit(
            to=to,
            cause=cause,
            next_step=run.next_step,
            events=[transitions.NewEvent("error", stopped)],
            audits=[ended_audit(run, to)] if to.ended else [],
            error=stopped,
        ),
    )
    announce(run.id, seen.last_seq, run.project_id, inbox=True)


def _fail_broken(claim: Claim) -> None:
    """A defect of ours or of a tool's declaration: the run fails with a plain message; the log has the rest."""
    try:
        run = restore.load_run(claim)
        if run.status == RunStatus.RUNNING.value and run.lease_epoch == claim.epoch:
            text = "The run stopped on an internal error. Retry it; the worker's log says more."
            _stop_unrestored(claim, run, InterlockError(text))
    except (Fenced, DatabaseError):
        log.warning("run.broken_unsaved")

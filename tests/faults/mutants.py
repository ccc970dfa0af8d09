"""Defects that the harness must find: each breaks one promise of the core, in this process only.

A mutant is a list of patches. `applied` takes them back; `apply` leaves them to a process that ends soon.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from django.db import connection

from runtime_core import decisions, sql, transitions
from runtime_core.loop import continuation, drive, model_step, tool_step
from runtime_core.models import Interrupt
from runtime_core.states import CallStatus, RunStatus
from runtime_core.transactions import one_commit
from runtime_core.transitions import Seen, StepCommit

Patch = tuple[Any, str, Any]

_EPOCH = "lease_epoch = %(epoch)s"
_VERSION = "version = %(version)s"


def _without(statement: str, *conditions: str) -> str:
    """The statement as if nobody had thought of these conditions."""
    for condition in conditions:
        assert condition in statement, f"the statement has no {condition!r} any more"
        # The value still goes along, and decides nothing.
        column, value = condition.split(" = ")
        statement = statement.replace(condition, f"({column} IS NOT NULL OR {column} = {value})")
    return statement


def _step_statements(change: Callable[[str], str]) -> list[Patch]:
    """Every form of the step's statement, changed."""
    real = sql.commit_step
    whole = real(frozenset(sql._PARTS))
    assert change(whole) != whole, "there is nothing to change"
    return [(sql, "commit_step", lambda parts: change(real(parts)))]


def no_epoch() -> list[Patch]:
    """A worker's writes ask only for a running run."""
    return [
        (sql, "APPEND_EVENTS", _without(sql.APPEND_EVENTS, _EPOCH)),
        *_step_statements(lambda text: _without(text, _EPOCH)),
    ]


def no_guard_on_steps() -> list[Patch]:
    """A step is written whatever version and epoch the run has."""
    return _step_statements(lambda text: _without(text, _EPOCH, _VERSION))


def no_epoch_in_heartbeats() -> list[Patch]:
    """A lease is renewed for whoever once had the run."""
    statement = _without(sql.HEARTBEAT, "run_lease.epoch = held.epoch")
    return [(sql, "HEARTBEAT", statement)]


def no_new_epoch_when_a_run_is_lost() -> list[Patch]:
    """The reconciler gives a run back under the epoch of the worker that lost it."""
    statement = sql.REAP_LOST.replace("lease_epoch = lease_epoch + 1", "lease_epoch = lease_epoch")
    assert statement != sql.REAP_LOST
    return [(sql, "REAP_LOST", statement)]


def no_intent() -> list[Patch]:
    """A tool is touched before the ledger says so."""
    follow = continuation.follow

    def without(work: Any, calls: Any, text: str, **more: Any) -> Any:
        return (
            follow(work, calls, text, **{**more, "begin": False})
            if _next_runs(work, calls)
            else follow(work, calls, text, **more)
        )

    def begin(work: Any, call: Any, *, again: bool = False) -> Any:
        work.append([work.open_step("tool", call.tool)])
        return call.evolve(
            status=CallStatus.EXECUTING, epoch=work.claim.epoch, attempts=call.attempts + 1
        )

    def changed(before: Any, after: Any) -> Any:
        row = row_of(before, after)
        return {
            **row,
            "seen": CallStatus.APPROVED.value if row["seen"] == "executing" else row["seen"],
        }

    row_of = tool_step.ledger.changed_row
    return [
        (tool_step, "follow", without),
        (model_step, "follow", without),
        (drive, "follow", without),
        (tool_step, "_begin", begin),
        (tool_step.ledger, "changed_row", changed),
    ]


def _next_runs(work: Any, calls: Any) -> bool:
    return any(c.status is CallStatus.APPROVED and not c.approval for c in calls)


def blind_replay() -> list[Patch]:
    """Whatever a lost worker was doing is simply done again."""
    return [
        (
            tool_step,
            "_recover",
            lambda work, hold, call, tool: tool_step._begin(work, call, again=True),
        )
    ]


def new_key_each_attempt() -> list[Patch]:
    """The idempotency key is of the attempt, not of the call."""
    real = tool_step._context

    def context(work: Any, hold: Any, call: Any, *rest: Any) -> Any:
        ctx = real(work, hold, call, *rest)
        if call.attempts > 1:
            object.__setattr__(ctx, "idempotency_key", f"{call.idempotency_key}-{call.attempts}")
        return ctx

    return [(tool_step, "_context", context)]


def _split(*later: str) -> Callable[..., Seen]:
    """A step in two commits: all but these rows, then these."""
    real = transitions.commit_step

    def commit(claim: Any, seen: Seen, step: StepCommit) -> Seen:
        rest = {name: getattr(step, name) for name in later}
        if step.to is not RunStatus.RUNNING or not any(rest.values()):
            return real(claim, seen, step)
        seen = real(claim, seen, dataclasses.replace(step, **dict.fromkeys(later, ())))
        return real(claim, seen, StepCommit(next_step=step.next_step, **rest))

    return commit


def checkpoint_in_a_commit_of_its_own() -> list[Patch]:
    """First the result, then the checkpoint that it tells of."""
    return [(transitions, "commit_step", _split("checkpoints"))]


def events_before_their_step() -> list[Patch]:
    """What a step tells is numbered and written ahead of it."""
    real = transitions.commit_step

    def commit(claim: Any, seen: Seen, step: StepCommit) -> Seen:
        if not step.events:
            return real(claim, seen, step)
        seen = transitions.append(claim, seen, step.events, step.next_step)
        return real(claim, seen, dataclasses.replace(step, events=()))

    return [(transitions, "commit_step", commit)]


def question_after_the_pause() -> list[Patch]:
    """The run waits first; what it waits for is stored next."""
    real = transitions.commit_step

    def commit(claim: Any, seen: Seen, step: StepCommit) -> Seen:
        if not step.interrupts:
            return real(claim, seen, step)
        after = real(claim, seen, dataclasses.replace(step, interrupts=(), audits=()))
        _store(claim, step)
        return after

    return [(transitions, "commit_step", commit)]


def _store(claim: Any, step: StepCommit) -> None:
    asked = sql._PARTS["asked"].split("asked AS (")[1].rsplit(")", 1)[0]
    with one_commit("late"), connection.cursor() as cursor:
        cursor.execute(
            f"WITH moved AS (SELECT id, project_id FROM run WHERE id = %(run)s) {asked}",  # noqa: S608
            {"run": claim.run_id, "interrupts": transitions._dump(step.interrupts)},
        )
        transitions.ports.audit().record(step.audits)


def lease_kept_while_a_person_thinks() -> list[Patch]:
    """A worker stays bound to a run that waits."""
    return _step_statements(
        lambda text: text.replace("AND %(to)s::text <> 'running'", "AND %(ended)s")
    )


def locks_turned_round() -> list[Patch]:
    """A decision locks its interrupt before its run."""
    real = decisions.lock

    def lock(interrupt_id: Any) -> Any:
        Interrupt.objects.select_for_update().get(id=interrupt_id)
        return real(interrupt_id)

    return [(decisions, "lock", lock)]


def decided_twice() -> list[Patch]:
    """A settled interrupt takes another decision."""
    from approvals.deciding import commands, entry

    def late(actor: Any, interrupt: Any, opinion: Any, *rest: Any) -> Any:
        with one_commit("late"):
            return commands._vote(actor, entry.lock(interrupt), opinion, False, False)

    return [(commands, "_answer_late", late), (decisions, "check_current", lambda *_, **__: None)]


def unknown_commit_sent_again() -> list[Patch]:
    """Where the connection broke, the write is sent again without a look."""

    def settle(write: Any, found: Any, claim: Any) -> Any:
        connection.close()
        return write()

    return [(transitions, "_settle", settle)]


def unknown_commit_taken_for_done() -> list[Patch]:
    """Where the connection broke, the write is believed to be there."""

    def settle(write: Any, found: Any, claim: Any) -> Any:
        connection.close()
        row = transitions._one(sql.READ_BACK, {"run": claim.run_id})
        return row[:4] if row else None

    return [(transitions, "_settle", settle)]


def audit_in_a_commit_of_its_own() -> list[Patch]:
    """What happened first, its audit entry later."""
    real = transitions._commit

    def commit(params: Any, step: StepCommit) -> Any:
        row = real(params, dataclasses.replace(step, audits=()))
        if row is not None and step.audits:
            transitions.ports.audit().record(step.audits)
        return row

    return [(transitions, "_commit", commit)]


MUTANTS: dict[str, Callable[[], list[Patch]]] = {
    f.__name__: f
    for f in (
        no_epoch,
        no_guard_on_steps,
        no_epoch_in_heartbeats,
        no_new_epoch_when_a_run_is_lost,
        no_intent,
        blind_replay,
        new_key_each_attempt,
        checkpoint_in_a_commit_of_its_own,
        events_before_their_step,
        question_after_the_pause,
        lease_kept_while_a_person_thinks,
        locks_turned_round,
        decided_twice,
        unknown_commit_sent_again,
        unknown_commit_taken_for_done,
        audit_in_a_commit_of_its_own,
    )
}


@contextlib.contextmanager
def applied(name: str) -> Iterator[None]:
    """This process has the defect while the block runs; none if the name is empty."""
    with contextlib.ExitStack() as stack:
        for target, attribute, value in MUTANTS[name]() if name else ():
            stack.enter_context(mock.patch.object(target, attribute, value))
        yield


def apply(name: str) -> None:
    """This process has the defect from now on."""
    for target, attribute, value in MUTANTS[name]() if name else ():
        setattr(target, attribute, value)

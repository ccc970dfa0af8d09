"""The only writer of run state: compare-and-set, fence, events and audit in one place.

A worker's writes go through `claim`, `append`, `commit_step` and `release`; what happens to runs that nobody holds
goes through `move` and `tell`. Every move is checked against the table in `states.py` before SQL is sent, and the SQL
itself is conditional on what was seen.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import InterfaceError, InternalError, OperationalError, connection
from django.db.models import Model

from runtime_core import clock, ports, prepared, sql, sql_claim, states, vault
from runtime_core.errors import Fenced, IllegalTransition
from runtime_core.limits import limits
from runtime_core.models import Checkpoint, Event, Message, ToolCall
from runtime_core.models.sealed import sealed_fields
from runtime_core.prepared import Row
from runtime_core.states import RunStatus
from runtime_core.transactions import one_commit
from runtime_core.values import Audit, Claim, Json, Span, Usage

# How long a worker tries to learn what became of its commit while the database is away; then the lease decides.
READ_BACK_SECONDS = 20.0
# A process that has met quotas takes the claim that keeps them at once, for so long.
LIMITED_SECONDS = 5.0
_limited_until = 0.0

# The server ended the session of a worker that slept inside a transaction.
_CUT_OFF = ("25P03", "25P04")
_CLOCK_STOPS = (RunStatus.INTERRUPTED, RunStatus.PAUSED)


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to append; `data` is redacted already and storable."""

    type: str
    data: dict[str, Json]
    step: int | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """What a worker learns from each of its writes."""

    version: int
    last_seq: int
    cancel_requested: bool
    pause_requested: bool


@dataclass(frozen=True, slots=True)
class StepCommit:
    """All that one step writes, its raw texts plain. Rows have the shape of `sql.commit_step`'s record sets."""

    to: RunStatus = RunStatus.RUNNING
    cause: str = ""
    next_step: int = 0
    steps: Sequence[dict[str, Json]] = ()
    messages: Sequence[dict[str, Json]] = ()
    new_calls: Sequence[dict[str, Json]] = ()
    changed_calls: Sequence[dict[str, Json]] = ()
    interrupts: Sequence[dict[str, Json]] = ()
    checkpoints: Sequence[dict[str, Json]] = ()
    events: Sequence[NewEvent] = ()
    audits: Sequence[Audit] = ()
    places: Sequence[int] = ()
    waits_for: str = ""
    spans: Sequence[Span] = ()
    usage: Usage = field(default_factory=Usage)
    model_failures: int = 0
    progress: bool = True
    available_in: float | None = None
    output: str | None = None
    error: dict[str, Json] | None = None
    undone: Sequence[str] = ()
    """Calls of another run that are taken back as of this commit."""


@dataclass(frozen=True, slots=True)
class NodeCommit:
    """All that one node of a graph writes where nothing but its state changes; `state` is canonical JSON."""

    step_id: uuid.UUID
    index: int
    attempt: int
    name: str
    started_at: dt.datetime
    next_step: int
    checkpoint_id: uuid.UUID
    reason: str
    schema_version: int
    messages: int
    state: str
    digest: str
    events: Sequence[NewEvent]


def claim(worker: str, run_id: uuid.UUID | None = None) -> tuple[Claim, int] | None:
    """Take one pending run that is due (that one, if `run_id` is given) and its last_seq; None if there is none."""
    params = {"run": run_id, "worker": worker, "lease_seconds": limits().lease_seconds}
    with one_commit("claim", alone=True):
        row = _claim(params)
    if row is None or row[0] is None:
        return None
    return Claim(run_id=row[0], epoch=row[1], worker=worker, places=tuple(row[4])), row[2]


def _claim(params: dict[str, Any]) -> Row | None:
    """The claim that fits: the lighter one does nothing, and says so, where there are quotas."""
    global _limited_until
    one = params["run"] is not None
    if clock.monotonic() > _limited_until:
        row = _one_planned(sql_claim.CLAIM_ONE if one else sql_claim.CLAIM_ANY, params)
        if row is None or row[0] is not None:
            return row
        _limited_until = clock.monotonic() + LIMITED_SECONDS
    return _one_planned(sql_claim.CLAIM_ONE_LIMITED if one else sql_claim.CLAIM_ANY_LIMITED, params)


def take_place(claim: Claim, kind: str, key: str, waited: bool) -> tuple[int | None, bool]:
    """A free place of this quota, held by the claim from now on, and whether there is such a quota.

    None where no place is free, or others wait for one and this run has not `waited`; Fenced if the lease is over.
    """
    params = {
        "run": claim.run_id,
        "epoch": claim.epoch,
        "kind": kind,
        "key": key,
        "waited": waited,
    }
    with one_commit("take_place", alone=True):
        row = _one_planned(sql_claim.TAKE, params)
    if row is None or row[0] is None:
        raise Fenced()
    return row[1], bool(row[2])


def append(claim: Claim, seen: Seen, events: Sequence[NewEvent], next_step: int = 0) -> Seen:
    """Add events of a step that still goes on; Fenced if the lease is over."""
    params = {
        "run": claim.run_id,
        "epoch": claim.epoch,
        "n_events": len(events),
        "next_step": next_step,
        "events": _events_json(events),
    }
    row = _written(
        lambda: _append(params),
        lambda found: _appended(claim, seen, found, events),
        claim,
    )
    return Seen(seen.version, row[0], seen.cancel_requested, seen.pause_requested)


def commit_step(claim: Claim, seen: Seen, step: StepCommit) -> Seen:
    """Write one step whole or not at all; Fenced if this worker no longer owns the run."""
    events = [*step.events]
    if step.to is not RunStatus.RUNNING:
        states.check_move(RunStatus.RUNNING, step.to, step.cause)
        events += _status_events(RunStatus.RUNNING, step.to, step.cause, step.output)
    params = _commit_params(claim, seen, step, events)
    row = _written(
        lambda: _commit(params, step),
        lambda found: _committed(seen, found, any(s["kind"] == "model" for s in step.steps)),
        claim,
    )
    if step.spans:
        ports.spans().write(step.spans)
    return Seen(*row[:4])


def commit_node(claim: Claim, seen: Seen, node: NodeCommit, renew: bool) -> Seen:
    """Write one node of a graph; Fenced if this worker no longer owns the run. `renew` begins the lease anew."""
    params = {
        "run": claim.run_id,
        "epoch": claim.epoch,
        "version": seen.version,
        "next_step": node.next_step,
        "lease_seconds": limits().lease_seconds,
        "step_id": node.step_id,
        "index": node.index,
        "attempt": node.attempt,
        "name": node.name,
        "started_at": node.started_at,
        "checkpoint_id": node.checkpoint_id,
        "reason": node.reason,
        "schema_version": node.schema_version,
        "messages": node.messages,
        "state": vault.seal(node.state, vault.context("checkpoint", "state", node.checkpoint_id)),
        "digest": node.digest,
        "n_events": len(node.events),
        **_node_events(node.events),
    }
    told = {0: (), 1: ("told_one",)}.get(len(node.events), ("told",))
    statement = sql.commit_node(frozenset((*told, "kept") if renew else told))
    row = _written(
        lambda: _commit_node(statement, params),
        lambda found: _committed(seen, found, False),
        claim,
    )
    return Seen(*row[:4])


def release(claim: Claim, cause: str = "released") -> int | None:
    """Give a run back to the queue, untouched (a worker shuts down); its last_seq, or None if it was not ours."""
    params = {"run": claim.run_id, "epoch": claim.epoch, "cause": cause}
    with one_commit("release", alone=True):
        row = _one(sql.RELEASE, params)
    return row[1] if row else None


def reap(dead: Sequence[str] = ()) -> list[tuple[uuid.UUID, int, int, uuid.UUID]]:
    """Re-queue runs whose lease has run out, by the database's clock, or whose worker is one of the dead.

    (run, last_seq, new epoch, project) of each.
    """
    with one_commit("reap", alone=True), connection.cursor() as cursor:
        cursor.execute(sql.REAP_LOST, {"cause": "lease_lost", "dead": list(dead)})
        return list(cursor.fetchall())


def heartbeat(claims: Sequence[Claim]) -> set[uuid.UUID]:
    """Extend the leases of these claims; the runs whose lease is still ours."""
    with one_commit("heartbeat", alone=True), connection.cursor() as cursor:
        cursor.execute(
            sql.HEARTBEAT,
            {
                "runs": [c.run_id for c in claims],
                "epochs": [c.epoch for c in claims],
                "lease_seconds": limits().lease_seconds,
            },
        )
        return {row[0] for row in cursor.fetchall()}


def wishes(run_ids: Sequence[uuid.UUID]) -> list[tuple[uuid.UUID, int, str, bool, bool, bool]]:
    """(run, epoch, status, cancel wished, pause wished, deadline passed) of each of these runs."""
    with connection.cursor() as cursor:
        cursor.execute(sql.WISHES, {"runs": list(run_ids)})
        return list(cursor.fetchall())


def move(
    run_id: uuid.UUID,
    to: RunStatus,
    cause: str,
    *,
    events: Sequence[NewEvent] = (),
    error: dict[str, Json] | None = None,
    new_attempt: bool = False,
    output: str | None = None,
    worked_seconds: float = 0.0,
) -> int:
    """Change the status of a run that nobody holds, in the caller's transaction; its last_seq.

    Where its clock stood still, its deadline moves on by that time, less the seconds that were worked for it meanwhile.
    IllegalTransition if its status, read under lock, is none that the table of moves allows for this cause.
    """
    sources = states.allowed_sources(to, cause) - {RunStatus.RUNNING}
    extra = [*events]
    if to.ended:
        extra.append(NewEvent("done", {"status": to.value, "output": output}))
    row = _one(
        sql.MOVE,
        {
            "run": run_id,
            "to": to.value,
            "cause": cause,
            "sources": [s.value for s in sources],
            "attempts": 1 if new_attempt else 0,
            "n_events": len(extra),
            "events": _events_json(extra),
            "error": _dump(error) if error is not None else None,
            "ended": to.ended,
            "worked_seconds": worked_seconds,
        },
    )
    if row is None:
        raise IllegalTransition(
            f"The run cannot become {to.value} by {cause} now; it must be "
            f"{' or '.join(sorted(s.value for s in sources))}."
        )
    return int(row[0])


def tell(run_id: uuid.UUID, events: Sequence[NewEvent]) -> int:
    """Add events to a run that nobody holds, in the caller's transaction; its last_seq."""
    row = _one(sql.TELL, {"run": run_id, "n_events": len(events), "events": _events_json(events)})
    if row is None:
        raise IllegalTransition("The run is gone.")
    return int(row[0])


def _status_events(
    source: RunStatus, to: RunStatus, cause: str, output: str | None
) -> list[NewEvent]:
    events = [NewEvent("run_status", {"from": source.value, "to": to.value, "cause": cause})]
    if to.ended:
        events.append(NewEvent("done", {"status": to.value, "output": output}))
    return events


def _commit_params(
    claim: Claim, seen: Seen, step: StepCommit, events: Sequence[NewEvent]
) -> dict[str, Any]:
    return {
        "run": claim.run_id,
        "epoch": claim.epoch,
        "version": seen.version,
        "to": step.to.value,
        "ended": step.to.ended,
        "stopped": step.to in _CLOCK_STOPS or step.cause == "children",
        "next_step": step.next_step,
        "steps_done": len(step.steps),
        "n_events": len(events),
        "input_tokens": step.usage.input_tokens,
        "output_tokens": step.usage.output_tokens,
        "cost_microusd": step.usage.cost_microusd,
        "model_failures": step.model_failures,
        "progress": step.progress,
        "available_in": step.available_in,
        "waits_for": step.waits_for,
        "places": _freed(claim, step),
        "output": step.output,
        "error": _dump(step.error) if step.error is not None else None,
        "lease_seconds": limits().lease_seconds,
        "events": _events_json(events),
        **{name: _dump(rows) for name, rows in _rows_of(claim, step) if rows},
    }


def _rows_of(claim: Claim, step: StepCommit) -> Iterator[tuple[str, Sequence[dict[str, Json]]]]:
    """The rows of each table as they are stored."""
    yield "steps", step.steps
    yield "messages", [_sealed(Message, m, claim.run_id, m["position"]) for m in step.messages]
    yield "new_calls", [_sealed(ToolCall, row, row["id"]) for row in step.new_calls]
    yield "changed_calls", [_sealed(ToolCall, row, row["id"]) for row in step.changed_calls]
    yield "interrupts", step.interrupts
    yield "checkpoints", [_sealed(Checkpoint, row, row["id"]) for row in step.checkpoints]


def _sealed(model: type[Model], row: dict[str, Json], *identity: object) -> dict[str, Json]:
    """The row with its raw texts as they are stored, in base64."""
    return row | {
        field.attname: base64.b64encode(field.sealed(row[field.attname], *identity)).decode()
        for field in sealed_fields(model)
        if row.get(field.attname) is not None
    }


def _freed(claim: Claim, step: StepCommit) -> list[int]:
    """The places of quotas that this commit gives back: the step's, and the run's where it is let go."""
    if step.to is RunStatus.RUNNING:
        return list(step.places)
    return [*step.places, *claim.places]


def taken_back(calls: Sequence[str]) -> None:
    """Mark calls of another run as compensated, in the caller's transaction."""
    with connection.cursor() as cursor:
        cursor.execute(sql.TAKEN_BACK, {"calls": list(calls)})


def _commit(params: dict[str, Any], step: StepCommit) -> Row | None:
    """The step's statement, with its audit entries and what it took back in the same transaction, if any."""
    undone = [*step.undone, *(row["undoes"] for row in step.changed_calls if row.get("undoes"))]
    with one_commit("commit", alone=not (step.audits or undone)):
        row = _one_planned(sql.commit_step(_parts(params, step)), params)
        if row is not None and undone:
            taken_back(undone)
        if row is not None and step.audits:
            ports.audit().record(step.audits)
        return row


def _parts(params: dict[str, Any], step: StepCommit) -> frozenset[str]:
    """Which parts of the step's statement have something to write."""
    written = {
        "kept": step.to is RunStatus.RUNNING,
        "released": step.to is not RunStatus.RUNNING,
        "freed": params["places"],
        "stepped": step.steps,
        "said": step.messages,
        "proposed": step.new_calls,
        "changed": step.changed_calls,
        "asked": step.interrupts,
        "saved": step.checkpoints,
        "told": params["n_events"],
    }
    return frozenset(part for part, has in written.items() if has)


def _node_events(events: Sequence[NewEvent]) -> dict[str, Any]:
    """One event, as nearly every node has, goes as scalars."""
    if len(events) != 1:
        return {"events": _events_json(events)}
    [event] = events
    return {"event_type": event.type, "event_step": event.step, "event_data": _dump(event.data)}


def _commit_node(statement: str, params: dict[str, Any]) -> Row | None:
    with one_commit("node", alone=True):
        return _one_planned(statement, params)


def _append(params: dict[str, Any]) -> Row | None:
    with one_commit("append", alone=True):
        return _one_planned(sql.APPEND_EVENTS, params)


def _written(
    write: Callable[[], Row | None], found: Callable[[Row], Row | None], claim: Claim
) -> Row:
    """Run a fenced write; where the connection breaks, find out under lock whether it committed.

    `found` answers what the write would have answered if it is there already.
    """
    try:
        row = write()
    except (OperationalError, InterfaceError, InternalError) as error:
        if connection.in_atomic_block or not _is_connection_loss(error):
            raise
        row = _settle(write, found, claim)
    if row is None:
        raise Fenced()
    return row


def _is_connection_loss(error: Exception) -> bool:
    """True if nobody knows whether the statement committed (a timeout or a lock error says that it did not)."""
    sqlstate = getattr(error.__cause__, "sqlstate", None)
    return sqlstate is None or sqlstate.startswith(("08", "57P")) or sqlstate in _CUT_OFF


def _settle(
    write: Callable[[], Row | None], found: Callable[[Row], Row | None], claim: Claim
) -> Row | None:
    until = clock.monotonic() + READ_BACK_SECONDS
    while True:
        connection.close()
        try:
            with one_commit("settle"):
                row = _one(sql.READ_BACK, {"run": claim.run_id})
                if row is None or row[4] != claim.epoch:
                    return None
                return found(row) or write()
        except (OperationalError, InterfaceError) as error:
            if clock.monotonic() > until:
                raise Fenced("The database was away for too long.") from error
            time.sleep(0.2)


def _committed(seen: Seen, row: Row, has_text: bool) -> Row | None:
    """The step's own answer if its commit is there already."""
    if row[0] == seen.version + 1:
        return row[:4]
    if has_text:
        _refuse_torn_text(seen, row)
    return None


def _appended(claim: Claim, seen: Seen, row: Row, events: Sequence[NewEvent]) -> Row | None:
    """The append's own answer if these events are there already; somebody else may have told something too."""
    _refuse_torn_text(seen, row)
    later = Event.objects.filter(run_id=claim.run_id, seq__gt=seen.last_seq)
    stored = list(later.order_by("seq").values_list("type", "step", "data"))
    ours = [(e.type, e.step, json.loads(_dump(e.data))) for e in events]
    starts = range(len(stored) - len(ours) + 1)
    return (row[1],) if any(stored[n : n + len(ours)] == ours for n in starts) else None


def _refuse_torn_text(seen: Seen, row: Row) -> None:
    """Text is not synced to disk before its step is: what a crash of the server took cannot be continued."""
    if row[1] < seen.last_seq:
        raise Fenced("The database lost text of a step in a crash; the step is taken again.")


def _one(statement: str, params: dict[str, Any]) -> Row | None:
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        row: Row | None = cursor.fetchone()
        return row


# The same for what each step sends.
_one_planned = prepared.one


def _events_json(events: Sequence[NewEvent]) -> str:
    return _dump([{"type": e.type, "step": e.step, "data": e.data} for e in events])


_JSON = json.JSONEncoder(default=str, separators=(",", ":"))


def _dump(value: Any) -> str:
    return _JSON.encode(value)

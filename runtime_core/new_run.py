"""The row and the first message of a new run: whoever starts it, a person, a fork or another run's tool call."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

from django.db import IntegrityError
from django.db.models import Max

from runtime_core import ports, scope, transitions
from runtime_core.errors import ThreadBusy
from runtime_core.gateway import messages as wire
from runtime_core.models import AgentVersion, Message, Run, Thread
from runtime_core.run_limits import RequestedLimits
from runtime_core.sanitize import canonical
from runtime_core.transactions import one_commit
from runtime_core.transitions import NewEvent
from runtime_core.values import Json

_TITLE_CHARS = 100


def insert(
    version: AgentVersion,
    thread: Thread,
    text: str,
    bounds: RequestedLimits,
    *,
    created_by: int,
    metadata: Mapping[str, Json] | None = None,
    parent: Run | None = None,
    parent_call: uuid.UUID | None = None,
    path: Sequence[Sequence[str]] = (),
    undoes: Run | None = None,
    next_step: int = 0,
    priority: int = 0,
) -> Run:
    """A pending run of that version, in the caller's transaction; ThreadBusy if another one has the thread."""
    with scope.within(thread.project_id, version.agent_id):
        gate = ports.redactor()
        shown, noted = gate.text(text), gate.redact(dict(metadata or {})).value
        by_way_of = gate.redact([list(part) for part in path]).value
    try:
        with one_commit("insert"):
            return Run.objects.create(
                project_id=thread.project_id,
                thread=thread,
                agent_id=version.agent_id,
                agent_version=version,
                created_by_id=created_by,
                parent=parent,
                parent_call=parent_call,
                undoes=undoes,
                next_step=next_step,
                compensation="due" if takes_back_by_itself(version) and undoes is None else "",
                path=by_way_of,
                priority=priority,
                title=_title(shown),
                input=shown,
                metadata=noted,
                max_steps=bounds.max_steps,
                max_tokens=bounds.max_tokens,
                max_cost_microusd=bounds.max_cost_microusd,
                deadline_s=bounds.deadline_s,
            )
    except IntegrityError as error:
        if "run_one_a_thread" in str(error):
            raise ThreadBusy() from None
        raise


def takes_back_by_itself(version: AgentVersion) -> bool:
    """True if the agent wants the effects of its runs undone where they fail or are stopped."""
    return bool(version.definition.get("compensate") == "auto")


def want_compensation(run: Run) -> None:
    """What becomes of the run's effects if it ends badly is what its agent says, whatever was decided meanwhile."""
    Run.objects.filter(id=run.id).update(
        compensation="due" if takes_back_by_itself(run.agent_version) else ""
    )


def say(run: Run, text: str) -> None:
    """What the run is asked, behind what its thread holds already."""
    top = Message.objects.filter(thread_id=run.thread_id).aggregate(top=Max("position"))["top"]
    body = canonical(wire.dump(wire.user_request(text)))
    position = 0 if top is None else top + 1
    Message.objects.create(thread_id=run.thread_id, position=position, run=run, step=-1, body=body)


def announce_created(run: Run) -> int:
    """The run's first event; its number."""
    return transitions.tell(
        run.id, [NewEvent("run_status", {"from": None, "to": "pending", "cause": "created"})]
    )


def _title(shown: str) -> str:
    line = shown.strip().splitlines()[0] if shown.strip() else "Run"
    return line if len(line) <= _TITLE_CHARS else f"{line[: _TITLE_CHARS - 1]}…"

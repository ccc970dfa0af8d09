"""What a worker holds in its hands of one claimed run: the picture that its commits keep true."""

from __future__ import annotations

import datetime as dt
import threading
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse

from runtime_core import clock, transitions
from runtime_core.checkpoints import snapshot
from runtime_core.checkpoints.graph_state import GraphState
from runtime_core.engines.port import Engine, View
from runtime_core.events.publish import announce_soon
from runtime_core.gateway import messages as wire
from runtime_core.limits import limits
from runtime_core.loop import places
from runtime_core.loop.retry import Attempt
from runtime_core.models import Run
from runtime_core.sanitize import canonical
from runtime_core.states import CallStatus, CheckpointReason, RunStatus
from runtime_core.tools.ledger import CallRecord
from runtime_core.tools.permission import Rule
from runtime_core.tools.registry import Tool
from runtime_core.transitions import NewEvent, NodeCommit, Seen, StepCommit
from runtime_core.values import Claim, Json, RunLimits, Usage


@dataclass(slots=True)
class OpenStep:
    """A step that was announced and has not been committed."""

    index: int
    kind: str
    name: str
    started_at: dt.datetime


@dataclass(slots=True)
class Work:
    """One claimed run, for the one thread that drives it; only `commit` and `append` change what is stored."""

    claim: Claim
    seen: Seen
    run: Run
    definition: Mapping[str, Any]
    engine: Engine
    tools: Mapping[str, Tool]
    rules: Sequence[Rule]
    limits: RunLimits
    history: list[ModelMessage]
    position: int
    own_messages: int
    rolling: str
    calls: list[CallRecord]
    next_step: int
    steps: int
    usage: Usage
    workspace: Path | None = None
    model_failures: int = 0
    attempt: Attempt = field(default_factory=Attempt)
    """How the next model request differs from the plain one, after failures."""
    output: str = ""
    cut: int = 0
    """How many of the thread's oldest messages the model is no longer sent; they stay stored."""
    graph: GraphState | None = None
    """The state that a graph's nodes have left; None for other engines."""
    weight: int = 0
    """About how many characters the thread's messages are."""
    room: int | None = None
    """How many bytes the model is sent at most, where it refused what its window should have taken."""
    step: OpenStep | None = None
    places: list[tuple[int, str]] = field(default_factory=list)
    """The places of quotas that the open step holds, and what each is of."""
    leased_at: float = field(default_factory=clock.monotonic)
    """When this process last knew, by its own clock, that the lease began anew."""
    began_at: float = field(default_factory=clock.monotonic)
    """When this process took the run."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def view(self) -> View:
        """Where the run is, for its engine."""
        if self.graph is not None:
            return View(True, self.output, self.calls, self.graph.node)
        last = self.history[-1] if self.history else None
        answered = isinstance(last, ModelResponse)
        return View(
            answered=answered, text=self.output, calls=tuple(self.calls) if answered else ()
        )

    @property
    def node(self) -> str:
        """Which node a graph has come to."""
        return "" if self.graph is None else self.graph.node

    def open_step(self, kind: str, name: str) -> NewEvent:
        """Announce the next step; its index is used up even if the step is never committed."""
        self.step = OpenStep(self.next_step, kind, name, clock.now())
        self.next_step += 1
        return NewEvent("step_start", {"kind": kind, "index": self.step.index}, self.step.index)

    def append(self, events: Sequence[NewEvent]) -> None:
        """Write events of the open step at once. Safe to call from a tool's own threads."""
        with self._lock:
            self.seen = transitions.append(self.claim, self.seen, events, self.next_step)
            seq = self.seen.last_seq
        announce_soon(self.claim.run_id, seq, self.run.project_id, inbox=False)

    def commit(self, step: StepCommit) -> None:
        """Write a step whole; only then the picture counts it."""
        asked_at = clock.monotonic()
        freed = self.places if step.steps or step.to is not RunStatus.RUNNING else []
        if freed:
            step = replace(step, places=[place for place, _ in freed])
        if self.run.undoes_id is not None:
            step = replace(step, undone=self._taken_back())
        with self._lock:
            self.seen = transitions.commit_step(self.claim, self.seen, step)
            seq = self.seen.last_seq
        if freed:
            self.places = []
            places.given_back(what for _, what in freed)
        self.leased_at = asked_at
        self.steps += len(step.steps)
        self.usage += step.usage
        self.model_failures = step.model_failures
        changes_inbox = step.to is not RunStatus.RUNNING
        announce_soon(self.claim.run_id, seq, self.run.project_id, inbox=changes_inbox)

    def _taken_back(self) -> list[str]:
        """Calls that this run has undone before, by a person's word too; to say it again changes nothing."""
        done = (call.undoes for call in self.calls if call.status is CallStatus.SUCCEEDED)
        return [str(call) for call in done if call]

    def commit_node(self, node: NodeCommit) -> None:
        """Write a graph's node, the same way."""
        asked_at = clock.monotonic()
        renew = asked_at - self.leased_at > limits().heartbeat_seconds
        with self._lock:
            self.seen = transitions.commit_node(self.claim, self.seen, node, renew)
            seq = self.seen.last_seq
        if renew:
            self.leased_at = asked_at
        self.steps += 1
        self.model_failures = 0
        announce_soon(self.claim.run_id, seq, self.run.project_id, inbox=False)

    def say(
        self, step: int, messages: Sequence[ModelMessage]
    ) -> tuple[list[dict[str, Json]], list[str]]:
        """Rows for these messages behind those stored already, and their bodies."""
        bodies = [canonical(wire.dump(message)) for message in messages]
        rows = [
            {"position": self.position + n, "step": step, "body": body}
            for n, body in enumerate(bodies)
        ]
        return rows, bodies

    def point(
        self,
        reason: CheckpointReason,
        step: int,
        *,
        steps: int = 0,
        added: int = 0,
        rolling: str | None = None,
    ) -> dict[str, Json]:
        """A checkpoint as it will be after a commit of so many steps and `added` messages, up to `rolling`."""
        return snapshot.row(
            step=step,
            reason=reason.value,
            messages=self.own_messages + added,
            rolling=rolling or self.rolling,
            state={"next_step": self.next_step, "steps": self.steps + steps, "cut": self.cut},
        )

    @property
    def may_act(self) -> bool:
        """False if this process slept so long since its last commit that the run may be somebody else's."""
        return clock.monotonic() - self.leased_at < limits().self_fence_seconds

    @property
    def run_id(self) -> uuid.UUID:
        return self.claim.run_id


def checkpoint_event(point: dict[str, Json], step: int | None = None) -> NewEvent:
    """What tells that a checkpoint was saved."""
    return NewEvent("checkpoint", {"id": point["id"], "reason": point["reason"]}, step)

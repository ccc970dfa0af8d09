"""What requests must look like, and what answers do."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence
from typing import Annotated, Any

from ninja import Schema
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from runtime_core.limits import limits
from runtime_core.loop.compensation import Outlook
from runtime_core.models import Agent, Checkpoint, Run, Thread, ToolCall
from runtime_core.run_limits import BOUNDS, PRIORITY
from runtime_core.sanitize import canonical
from runtime_core.scheduling.queue import Place
from runtime_core.tools import Tool


def _limit(name: str, **more: Any) -> Any:
    low, high = BOUNDS[name]
    return Field(None, ge=low, le=high, **more)


def _bounded_input(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    if len(text.encode("utf-8", "surrogatepass")) > limits().input_bytes:
        raise ValueError(f"must be at most {limits().input_bytes} bytes of UTF-8")
    return text


def _bounded_metadata(value: dict[str, Any]) -> dict[str, Any]:
    if len(canonical(value).encode("utf-8", "surrogatepass")) > limits().metadata_bytes:
        raise ValueError(f"must be at most {limits().metadata_bytes} bytes of JSON")
    return value


def _uuid_text(value: Any) -> Any:
    # Strict mode takes UUIDs only; JSON has no such thing, so exactly the usual text is let in.
    if isinstance(value, str) and len(value) == 36:
        return uuid.UUID(value)
    raise ValueError("must be a UUID")


InputText = Annotated[str, AfterValidator(_bounded_input)]
Metadata = Annotated[dict[str, Any], AfterValidator(_bounded_metadata)]
Uuid = Annotated[uuid.UUID, BeforeValidator(_uuid_text)]
Slug = Annotated[str, Field(min_length=1, max_length=60)]


class StrictBody(BaseModel):
    """A body that is taken as it stands: no coercion, no unknown key."""

    model_config = ConfigDict(strict=True, extra="forbid")


class LimitsIn(StrictBody):
    """What a run may spend; what is left out keeps its default."""

    max_steps: int | None = _limit("max_steps")
    max_tokens: int | None = _limit("max_tokens")
    max_cost_usd: float | None = _limit("max_cost_usd", allow_inf_nan=False)
    deadline_s: int | None = _limit("deadline_s")

    def given(self) -> dict[str, Any]:
        """Only what was given."""
        return self.model_dump(exclude_none=True)


class StartRun(StrictBody):
    """`project` is needed only where several visible projects have an agent of that name."""

    agent: Slug
    input: InputText
    project: Slug | None = None
    thread_id: Uuid | None = None
    limits: LimitsIn | None = None
    metadata: Metadata | None = None
    priority: int = Field(
        0, ge=PRIORITY[0], le=PRIORITY[1], description="The higher, the sooner in its project."
    )


class DeleteIn(StrictBody):
    """Why it is deleted: kept with the request, redacted."""

    reason: str = Field("", max_length=300)


class DeletionOut(Schema):
    """A deletion: `pending` while rows go (nobody sees any already), then `done`, with the counts a table."""

    id: uuid.UUID
    kind: str
    object_id: str
    state: str
    runs: int
    counts: dict[str, int]
    receipt: str
    created_at: dt.datetime
    ended_at: dt.datetime | None


class CreateThread(StrictBody):
    """`project` is needed only by those who may start runs in several."""

    metadata: Metadata | None = None
    project: Slug | None = None


class ResumeRun(StrictBody):
    """New limits for a run that is paused because the old ones are spent."""

    limits: LimitsIn | None = None


class CancelRun(StrictBody):
    """`force` ends a run that was asked to stop and has not."""

    force: bool = False


class ForkChanges(StrictBody):
    """What is different from the checkpoint on."""

    input: InputText | None = None
    limits: LimitsIn | None = None

    def given(self) -> dict[str, Any]:
        """Only what was given."""
        return self.model_dump(exclude_none=True)


class ForkRun(StrictBody):
    """From which checkpoint, and what is different from there."""

    checkpoint_id: Uuid
    changes: ForkChanges = Field(default_factory=ForkChanges)


class UsageOut(Schema):
    input_tokens: int
    output_tokens: int
    cost_usd: float


class LimitsOut(Schema):
    max_steps: int
    max_tokens: int
    max_cost_usd: float
    deadline_s: int


class QueueOut(Schema):
    """How many runs of the project are before it, and what else it waits for."""

    ahead: int
    reason: str | None


class RunOut(Schema):
    id: uuid.UUID
    thread_id: uuid.UUID
    agent: str
    agent_version: int
    status: str
    version: int
    attempt: int
    steps: int
    usage: UsageOut
    limits: LimitsOut
    error: dict[str, Any] | None
    created_at: dt.datetime
    started_at: dt.datetime | None
    ended_at: dt.datetime | None
    output: str | None
    interrupts: list[uuid.UUID]
    parent: uuid.UUID | None
    children: list[uuid.UUID]
    undoes: uuid.UUID | None
    priority: int
    queue: QueueOut | None

    @classmethod
    def of(
        cls,
        run: Run,
        open_interrupts: Sequence[uuid.UUID],
        children: Sequence[Run] = (),
        place: Place | None = None,
    ) -> RunOut:
        """The run as the API shows it."""
        return cls(
            id=run.id,
            thread_id=run.thread_id,
            agent=run.agent.name,
            agent_version=run.agent_version.number,
            status=run.status,
            version=run.version,
            attempt=run.attempt,
            steps=run.steps,
            usage=UsageOut(
                input_tokens=run.input_tokens,
                output_tokens=run.output_tokens,
                cost_usd=run.cost_microusd / 1_000_000,
            ),
            limits=LimitsOut(
                max_steps=run.max_steps,
                max_tokens=run.max_tokens,
                max_cost_usd=run.max_cost_microusd / 1_000_000,
                deadline_s=run.deadline_s,
            ),
            error=run.error,
            created_at=run.created_at,
            started_at=run.started_at,
            ended_at=run.ended_at,
            output=run.output,
            interrupts=list(open_interrupts),
            parent=run.parent_id if run.is_child else None,
            children=[child.id for child in children],
            undoes=run.undoes_id,
            priority=run.priority,
            queue=QueueOut(ahead=place.ahead, reason=place.reason) if place else None,
        )


class RunsOut(Schema):
    items: list[RunOut]
    next_cursor: str | None


class EffectOut(Schema):
    id: uuid.UUID
    call_id: str
    tool: str
    effect: str
    status: str

    @classmethod
    def of(cls, call: ToolCall) -> EffectOut:
        """One effect by the call that had it."""
        return cls(
            id=call.id, call_id=call.call_id, tool=call.tool, effect=call.effect, status=call.status
        )


class EffectsOut(Schema):
    stays: list[EffectOut]
    can_undo: list[EffectOut]
    undone: list[EffectOut]
    undone_by: uuid.UUID | None

    @classmethod
    def of(cls, found: Outlook) -> EffectsOut:
        """What a run did as the API shows it, the last first."""
        return cls(
            stays=[EffectOut.of(call) for call in found.stays],
            can_undo=[EffectOut.of(call) for call in found.can_undo],
            undone=[EffectOut.of(call) for call in found.undone],
            undone_by=found.by,
        )


class ThreadOut(Schema):
    id: uuid.UUID
    metadata: dict[str, Any]
    created_at: dt.datetime

    @classmethod
    def of(cls, thread: Thread) -> ThreadOut:
        """The thread as the API shows it."""
        return cls(id=thread.id, metadata=thread.metadata, created_at=thread.created_at)


class ToolCallOut(Schema):
    id: uuid.UUID
    call_id: str
    tool: str
    args: Any
    effect: str
    risk: str
    status: str
    attempts: int
    idempotency_key: str
    interrupt_id: uuid.UUID | None
    undoes: uuid.UUID | None
    result: Any

    @classmethod
    def of(cls, call: ToolCall) -> ToolCallOut:
        """The ledger row as the API shows it: redacted copies only."""
        return cls(
            id=call.id,
            call_id=call.call_id,
            tool=call.tool,
            args=call.args_redacted,
            effect=call.effect,
            risk=call.risk,
            status=call.status,
            attempts=call.attempts,
            idempotency_key=call.idempotency_key,
            interrupt_id=getattr(call, "interrupt_id", None),
            undoes=call.undoes_id,
            result=call.result_redacted,
        )


class ToolCallsOut(Schema):
    items: list[ToolCallOut]
    next_cursor: str | None


class CheckpointOut(Schema):
    id: uuid.UUID
    step: int
    reason: str
    schema_version: int
    messages: int
    digest: str
    pinned: bool
    created_at: dt.datetime

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> CheckpointOut:
        """The checkpoint as the API shows it; its state stays inside."""
        return cls(
            id=checkpoint.id,
            step=checkpoint.step,
            reason=checkpoint.reason,
            schema_version=checkpoint.schema_version,
            messages=checkpoint.messages,
            digest=checkpoint.digest,
            pinned=checkpoint.pinned,
            created_at=checkpoint.created_at,
        )


class CheckpointsOut(Schema):
    items: list[CheckpointOut]
    next_cursor: str | None


class AgentOut(Schema):
    name: str
    project: str
    version: int
    digest: str
    engine: str | None
    model: str | None
    tools: list[str]
    limits: dict[str, Any]

    @classmethod
    def of(cls, agent: Agent) -> AgentOut:
        """The agent's current version as the API shows it."""
        version = agent.current
        assert version is not None  # noqa: S101 (the query asks for it)
        definition = version.definition
        return cls(
            name=agent.name,
            project=agent.project.slug,
            version=version.number,
            digest=version.digest,
            engine=definition.get("engine"),
            model=definition.get("model"),
            tools=definition.get("tools") or [],
            limits=definition.get("limits") or {},
        )


class AgentsOut(Schema):
    items: list[AgentOut]
    next_cursor: str | None


class ToolOut(Schema):
    name: str
    description: str
    schema_: dict[str, Any] = Field(serialization_alias="schema")
    risk: str
    effect: str
    timeout_s: int
    digest: str

    @classmethod
    def of(cls, tool: Tool) -> ToolOut:
        """The tool as the API shows it: what a model and an approver see."""
        spec = tool.spec
        return cls(
            name=spec.name,
            description=spec.description,
            schema_=dict(spec.schema),
            risk=spec.risk.value,
            effect=spec.effect.value,
            timeout_s=spec.timeout_seconds,
            digest=spec.digest,
        )


class ToolsOut(Schema):
    items: list[ToolOut]
    next_cursor: str | None

"""What is carried from room to room: frozen values without behaviour that touches the world."""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Json = Any  # a value json.dumps takes: dict, list, str, int, float, bool, None


class Risk(enum.StrEnum):
    """How much harm a tool can do."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"

    @property
    def level(self) -> int:
        """0 for low to 3 for critical, to compare by."""
        return list(Risk).index(self)


class Effect(enum.StrEnum):
    """What running a tool twice would do; decides what recovery may do after a crash."""

    READ = "read"
    IDEMPOTENT = "idempotent"
    ONCE = "once"
    COMPENSATABLE = "compensatable"

    @property
    def repeatable(self) -> bool:
        """True if the tool may be run again with the same key without asking."""
        return self in (Effect.READ, Effect.IDEMPOTENT)


class Verdict(enum.StrEnum):
    """What a permission says of one call."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class RunLimits:
    """What one run may spend; spent means paused, not failed."""

    max_steps: int
    max_tokens: int
    max_cost_usd: float
    deadline_s: int


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and cost of one model request or of many added up; cost in millionths of a US dollar."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_microusd: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cost_microusd + other.cost_microusd,
        )


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model and an approver see it."""

    name: str
    description: str
    schema: Mapping[str, Json]
    risk: Risk
    effect: Effect
    timeout_seconds: int
    digest: str
    """SHA-256 over name, description and schema: what an approval is bound to."""


@dataclass(frozen=True, slots=True)
class ProposedCall:
    """A tool call as the model asked for it; `args_text` is its exact words."""

    call_id: str
    tool: str
    args_text: str


@dataclass(frozen=True, slots=True)
class Covered:
    """That a remembered approval covers a call, and in which words."""

    grant_id: uuid.UUID
    reason: str


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """How one tool call ended, before redaction. `result` is JSON; `status` a ledger status."""

    status: str
    result: Json = None
    truncated: bool = False
    error_code: str = ""


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asks for something: a person, a service token of a person, or the system itself."""

    user_id: int | None
    name: str
    via: str = "web"
    superuser: bool = False

    @property
    def is_system(self) -> bool:
        return self.user_id is None

    @property
    def is_machine(self) -> bool:
        """True for a service token: a program that acts in a person's name."""
        return self.via == "machine"


SYSTEM = Actor(user_id=None, name="system", via="system")


@dataclass(frozen=True, slots=True)
class Asked:
    """A call that people are to be asked about: what the policies of approval are matched with."""

    project_id: uuid.UUID
    agent: str
    tool: str
    risk: Risk
    args: Mapping[str, Json]
    schema: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class ApprovalTerms:
    """Under which terms people decide. `terms` is the deciding side's own record of them, stored as it is."""

    policy: uuid.UUID | None
    required: int
    requester_may: bool
    expires_seconds: float
    terms: Json


@dataclass(frozen=True, slots=True)
class Claim:
    """A worker's right to advance one run until its lease ends; every write carries `epoch`.

    `places` are the permits of quotas that it took; they are free again when the run is let go.
    """

    run_id: uuid.UUID
    epoch: int
    worker: str
    places: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Audit:
    """One thing the audit keeps; `data` holds ids and plain facts, and is redacted before it is stored."""

    action: str
    actor: Actor
    object_type: str
    object_id: str
    project_id: uuid.UUID | None = None
    run_id: uuid.UUID | None = None
    data: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Span:
    """One timed thing of a trace. `ended_at` None means it is still open; the same id again closes it.

    `kind`: run, step, llm, tool, mcp, subagent, compensate, sandbox, interrupt, decision, checkpoint.
    `status`: open, ok, error, cancelled, abandoned. Times are aware UTC. The sink redacts before it stores.
    """

    id: uuid.UUID
    run_id: uuid.UUID
    parent_id: uuid.UUID | None
    kind: str
    name: str
    started_at: dt.datetime
    ended_at: dt.datetime | None = None
    status: str = "open"
    epoch: int = 0
    step: int | None = None
    usage: Usage = Usage()
    attrs: Mapping[str, Json] = field(default_factory=dict)
    input: Json = None
    output: Json = None

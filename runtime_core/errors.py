"""Every error that can reach a person, a client or the loop, as one tree.

    InterlockError
    ├── RequestError          what a caller asked for cannot be done        (4xx)
    │   ├── NotFound  NotAllowed  InvalidInput  InvalidPayload
    │   ├── Unauthenticated  CsrfFailed  TooLarge  UnsupportedMediaType     (how it was asked)
    │   ├── IllegalTransition  ThreadBusy  Backpressure  IdempotencyMismatch
    │   └── DecisionConflict: StaleVersion  AlreadyDecided  UndoClosed  Withdrawn  Expired
    ├── Fenced                this worker no longer owns the run: stop touching it
    ├── WorkerLost            the run takes its workers down with it: a person must look
    ├── StateUnusable         a checkpoint, message or workspace does not verify: a person must look
    │   └── SealBroken        a sealed value does not open
    ├── StateNotPlain         a state that would not come back from JSON as it is, refused where it is saved
    ├── ModelError            talking to a model failed
    │   ├── ModelUnavailable  RateLimited  ModelTimeout                     (retried)
    │   ├── SchemaUnsupported                                               (once more, with plain schemas)
    │   └── ModelRejected  ContextTooLong  ModelRefused  ModelProtocolError  ScriptEnded  ModelNotConfigured
    └── ToolError             a tool could not run or failed
        ├── ToolFailed  ToolTimedOut  InvalidArguments  UnknownTool  SandboxUnavailable  WorkspaceError
        └── OutcomeUnknown    it may or may not have happened: never retried blindly

`code` is stable and public; `http_status` is used by the API; `retry` tells the loop what it may do.
"""

from __future__ import annotations

import enum
from typing import Any, ClassVar


class Retry(enum.Enum):
    """What the loop may do after an error of this class."""

    NEVER = "never"
    BACKOFF = "backoff"
    PLAIN_SCHEMAS = "plain_schemas"
    TELL_MODEL = "tell_model"


class InterlockError(Exception):
    """Something went wrong."""

    code: ClassVar[str] = "internal"
    http_status: ClassVar[int] = 500
    retry: ClassVar[Retry] = Retry.NEVER

    def __init__(self, message: str = "", **data: Any) -> None:
        self.message = message or (self.__doc__ or "").strip().splitlines()[0]
        self.data = data
        super().__init__(self.message)


class RequestError(InterlockError):
    """The request cannot be carried out."""

    code = "bad_request"
    http_status = 400


class NotFound(RequestError):
    """There is no such thing, or you may not see it."""

    code = "not_found"
    http_status = 404


class NotAllowed(RequestError):
    """Your role in this project does not allow that."""

    code = "not_allowed"
    http_status = 403


class InvalidInput(RequestError):
    """A field of the request is not valid."""

    code = "invalid_input"
    http_status = 422


class InvalidPayload(RequestError):
    """The decision's payload does not fit what it decides on."""

    code = "invalid_payload"
    http_status = 422


class Unauthenticated(RequestError):
    """Log in, or send `Authorization: Bearer <token>` with a token that is neither revoked nor expired."""

    code = "unauthenticated"
    http_status = 401


class CsrfFailed(RequestError):
    """A write with a session cookie needs the X-CSRFToken header; scripts use a bearer token instead."""

    code = "csrf_failed"
    http_status = 403


class TooLarge(RequestError):
    """The request's body is larger than this server takes."""

    code = "too_large"
    http_status = 413


class UnsupportedMediaType(RequestError):
    """Send the body as application/json."""

    code = "unsupported_media_type"
    http_status = 415


class IllegalTransition(RequestError):
    """The run's status does not allow that move."""

    code = "illegal_transition"
    http_status = 409


class NotEnded(RequestError):
    """Something of it is still at work; cancel it and wait for its end, then delete it."""

    code = "not_ended"
    http_status = 409


class PartOfRun(RequestError):
    """Another run holds what came out of this one; delete that run, and this one goes with it."""

    code = "part_of_run"
    http_status = 409


class Held(RequestError):
    """A legal hold keeps it; nothing was deleted. Who set the hold can release it."""

    code = "held"
    http_status = 409


class ThreadBusy(RequestError):
    """Another run of this thread has not ended yet; wait for it, cancel it or use a new thread."""

    code = "thread_busy"
    http_status = 409


class IdempotencyMismatch(RequestError):
    """This Idempotency-Key was used before with another request; use a new key."""

    code = "idempotency_mismatch"
    http_status = 409


class Backpressure(RequestError):
    """Too many runs are queued in this project; try again later."""

    code = "backpressure"
    http_status = 429


class AlreadyClaimed(RequestError):
    """Somebody else looks after the request."""

    code = "already_claimed"
    http_status = 409


class DecisionConflict(RequestError):
    """The interrupt is no longer what you decided on; nothing was done."""

    code = "stale_version"
    http_status = 409


class StaleVersion(DecisionConflict):
    """The request changed while you were looking at it; nothing was done."""


class AlreadyDecided(DecisionConflict):
    """Somebody has decided this already; your decision was not used."""

    code = "already_decided"


class UndoClosed(DecisionConflict):
    """The time to take the decision back has passed; nothing was done."""

    code = "undo_closed"


class Withdrawn(DecisionConflict):
    """The run ended, so this no longer needs a decision."""

    code = "withdrawn"


class Expired(DecisionConflict):
    """The time to decide has passed; it was rejected by the system."""

    code = "expired"
    http_status = 410


class Fenced(InterlockError):
    """This worker's lease is over; another one owns the run now."""

    code = "fenced"
    http_status = 409


class WorkerLost(InterlockError):
    """Worker after worker was lost with this run and it got no further; look at its last step, then retry it."""

    code = "worker_lost"


class StateUnusable(InterlockError):
    """The run's stored state does not verify; it was not continued."""

    code = "state_unusable"
    http_status = 409


class StateNotPlain(InterlockError):
    """A state to be saved holds something that JSON does not give back as it is; `data['at']` is its place."""

    code = "state_not_plain"


class SealBroken(StateUnusable):
    """A sealed value does not open: its key is not here, or it was changed."""


class ModelError(InterlockError):
    """The model could not be used."""

    code = "model_error"
    http_status = 502


class ModelUnavailable(ModelError):
    """The model's service cannot be reached or is overloaded."""

    code = "model_unavailable"
    retry = Retry.BACKOFF


class RateLimited(ModelError):
    """The model's service asks to slow down. `data['retry_after']` is in seconds, if it said so."""

    code = "model_rate_limited"
    retry = Retry.BACKOFF


class ModelTimeout(ModelError):
    """The model did not answer in time."""

    code = "model_timeout"
    retry = Retry.BACKOFF


class ModelProtocolError(ModelError):
    """The model's stream broke off or is not in the provider's format; nothing of it was executed."""

    code = "model_protocol_error"
    retry = Retry.BACKOFF


class ModelRejected(ModelError):
    """The model's service refused the request (authentication, unknown model, quota or bad request)."""

    code = "model_rejected"


class SchemaUnsupported(ModelRejected):
    """The model's service does not know something in the schema of a tool."""

    code = "model_schema_unsupported"
    retry = Retry.PLAIN_SCHEMAS


class ContextTooLong(ModelError):
    """The conversation no longer fits the model's context window."""

    code = "context_too_long"


class ModelRefused(ModelError):
    """The model refused to answer, or its provider's filter stopped it."""

    code = "model_refused"


class ModelNotConfigured(ModelError):
    """No model can be used: set INTERLOCK_MODEL, or give the agent a `model` or a `script`."""

    code = "model_not_configured"


class ScriptEnded(ModelError):
    """The script has no turn left for this conversation."""

    code = "script_ended"


class ToolError(InterlockError):
    """The tool could not be run."""

    code = "tool_error"
    retry = Retry.TELL_MODEL


class ToolFailed(ToolError):
    """The tool ran and reported an error."""

    code = "tool_failed"


class ToolTimedOut(ToolError):
    """The tool did not finish in its time."""

    code = "tool_timed_out"


class InvalidArguments(ToolError):
    """The arguments do not fit the tool's schema; nothing was run."""

    code = "invalid_arguments"


class UnknownTool(ToolError):
    """The agent has no tool of that name; nothing was run."""

    code = "unknown_tool"


class SandboxUnavailable(ToolError):
    """No sandbox can run here (bubblewrap is missing or not permitted); `manage.py doctor` says how to mend it."""

    code = "sandbox_unavailable"


class WorkspaceError(ToolError):
    """The run's workspace cannot be used."""

    code = "workspace_error"


class OutcomeUnknown(ToolError):
    """It is not known whether the tool's effect happened; it is not tried again without a decision."""

    code = "outcome_unknown"
    retry = Retry.NEVER

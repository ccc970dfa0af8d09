"""Runs one authorised tool call to its end, on a thread of its own, and says how it ended. Never
raises.

What may have happened although nobody can tell is `unknown`, never `failed`: only a tool that may
be repeated turns a timeout or a lost connection into a plain failure.
"""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError
from typing import Any

import structlog
from django import db

from runtime_core.errors import InvalidArguments, OutcomeUnknown, ToolError, ToolTimedOut
from runtime_core.limits import limits
from runtime_core.sanitize import clip, storable_text
from runtime_core.tools import result as results
from runtime_core.tools import schema
from runtime_core.tools.context import Happened, Stopped, ToolContext
from runtime_core.tools.registry import Tool
from runtime_core.values import Json, ToolOutcome

log = structlog.get_logger(__name__)

STOP_GRACE_SECONDS = 5.0
"""How long a function that was asked to stop may take to end before it is left to itself."""
_STOP_POLL_SECONDS = 0.05
ERROR_BYTES = 2_000
RETRY_SECONDS = 1.0
"""The longest pause before the first new try; it doubles with each."""

# Also what HTTP clients raise without deriving from the built-in ones, known by name so that none
# is imported.
_AMBIGUOUS = (
    TimeoutError,
    ConnectionError,
    EOFError,
    OutcomeUnknown,
    ToolTimedOut,
    CancelledError,
    asyncio.CancelledError,
    db.OperationalError,
    db.InterfaceError,
)
_AMBIGUOUS_NAMES = frozenset(
    (
        "Timeout",
        "TimeoutException",
        "TransportError",
        "ConnectionError",
        "NetworkError",
        "ProtocolError",
        "HTTPException",
        "APIConnectionError",
        "APITimeoutError",
    )
)


def run(tool: Tool, args: Mapping[str, Json], ctx: ToolContext, retries: int = 0) -> ToolOutcome:
    """Run `tool` with stored arguments: succeeded, failed, unknown or cancelled, with a result to
    store.

    A tool that may be repeated is tried again, with the same key, where its connection failed: at
    most `retries` times, and within its one timeout.

    Ends within the tool's timeout (or the context's deadline, if sooner) plus `STOP_GRACE_SECONDS`.
    """
    try:
        kwargs = schema.bind(tool, args)
    except InvalidArguments as error:
        return _failure("failed", error)
    if ctx.stopping.is_set():
        return ToolOutcome(
            "cancelled", {"error": "cancelled before it started"}, error_code="cancelled"
        )
    for number in range(retries):
        outcome, passing = _tried(tool, kwargs, ctx)
        if not passing or _paused(tool, number, ctx):
            return outcome
    return _tried(tool, kwargs, ctx)[0]


def _tried(tool: Tool, kwargs: Mapping[str, Any], ctx: ToolContext) -> tuple[ToolOutcome, bool]:
    """One try, and whether what failed may be over soon and may be tried again."""
    errors: list[BaseException] = []

    def body(inner: ToolContext) -> Any:
        try:
            return tool.fn(inner, **kwargs)
        except BaseException as error:
            errors.append(error)
            raise

    outcome = _call(tool, body, ctx)
    again = tool.spec.effect.repeatable and outcome.status == "failed"
    return outcome, again and bool(errors) and _ambiguous(errors[-1])


def _paused(tool: Tool, number: int, ctx: ToolContext) -> bool:
    """Wait before the next try; True if there is none, because it was stopped or its time is up."""
    seconds = RETRY_SECONDS * 2**number * random.random()  # noqa: S311 - not for secrets
    if seconds >= ctx.remaining:
        return True
    ctx.progress(f"{tool.spec.name} could not be reached; it is tried again.")
    return ctx.stopping.wait(seconds)


def reconcile(tool: Tool, args: Mapping[str, Json], ctx: ToolContext) -> ToolOutcome | None:
    """Ask a tool whether its effect happened: `succeeded` with the result, None if it did not, else
    `unknown`.
    """
    if tool.reconcile is None:
        return _failure("unknown", OutcomeUnknown())
    ask = tool.reconcile
    try:
        kwargs = schema.bind(tool, args)
    except InvalidArguments as error:
        return _failure("unknown", error)
    call = _Call(lambda inner: ask(inner, **kwargs), ctx, _seconds(tool, ctx))
    call.start()
    call.wait()
    if call.error is None and call.ended and call.returned is None:
        return None
    if call.error is None and isinstance(call.returned, Happened):
        return _success(call.returned.result)
    return _failure("unknown", call.error or OutcomeUnknown())


def compensate(tool: Tool, args: Mapping[str, Json], result: Json, ctx: ToolContext) -> ToolOutcome:
    """Take back what a compensatable tool did: `compensated`, `failed` or `unknown`."""
    undo = tool.compensate
    if undo is None:
        return _failure("failed", ToolError(f"{tool.spec.name} cannot be taken back"))
    try:
        kwargs = schema.bind(tool, args)
    except InvalidArguments as error:
        return _failure("failed", error)
    outcome = _call(tool, lambda inner: undo(inner, result, **kwargs), ctx)
    return (
        dataclasses.replace(outcome, status="compensated")
        if outcome.status == "succeeded"
        else outcome
    )


def _call(tool: Tool, body: Callable[[ToolContext], Any], ctx: ToolContext) -> ToolOutcome:
    if ctx.remaining <= 0:
        return _ended("failed", "ToolTimedOut: the time was up before it started", "tool_timed_out")
    call = _Call(body, ctx, _seconds(tool, ctx))
    try:
        call.start()
    except RuntimeError as error:  # no thread to be had: nothing ran
        return _failure("failed", error)
    call.wait()
    return _outcome(tool, call)


def _seconds(tool: Tool, ctx: ToolContext) -> float:
    return min(float(tool.spec.timeout_seconds), ctx.remaining)


class _Call:
    """A function on its own thread, with an event of its own to stop it by."""

    def __init__(
        self, body: Callable[[ToolContext], Any], ctx: ToolContext, seconds: float
    ) -> None:
        self.returned: Any = None
        self.error: BaseException | None = None
        self.cancelled = self.timed_out = False
        self.seconds = seconds
        self._outer = ctx
        self._deadline = time.monotonic() + seconds
        self._inner = dataclasses.replace(ctx, stopping=threading.Event(), deadline=self._deadline)
        self._done = threading.Event()
        context = contextvars.copy_context()
        # A daemon: a function that never ends must not keep the worker from ending.
        self._thread = threading.Thread(
            target=context.run, args=(self._run, body), name=f"tool-{ctx.call_id}", daemon=True
        )

    @property
    def ended(self) -> bool:
        return self._done.is_set()

    def start(self) -> None:
        self._thread.start()

    def wait(self) -> None:
        """Until the function has ended, or was asked to stop and did not in time."""
        while not self._done.wait(
            min(_STOP_POLL_SECONDS, max(self._deadline - time.monotonic(), 0))
        ):
            self.cancelled = self._outer.stopping.is_set()
            self.timed_out = not self.cancelled and time.monotonic() >= self._deadline
            if self.cancelled or self.timed_out:
                self._inner.stopping.set()
                if not self._done.wait(STOP_GRACE_SECONDS):
                    log.warning("tool_did_not_stop", call_id=self._outer.call_id)
                return

    def _run(self, body: Callable[[ToolContext], Any]) -> None:
        try:
            self.returned = body(self._inner)
        except BaseException as error:  # noqa: BLE001  whatever a tool raises is its outcome, not ours
            self.error = error
        finally:
            # Each thread has its own connections, and this thread is about to be gone.
            db.connections.close_all()
            self._done.set()


def _outcome(tool: Tool, call: _Call) -> ToolOutcome:
    if call.ended and call.error is None:
        # It did end, if only just: what really happened counts, not what was asked meanwhile.
        return _success(call.returned)
    stopped = isinstance(call.error, Stopped)
    repeatable = tool.spec.effect.repeatable
    if call.cancelled:
        sure = repeatable or stopped
        reason = "cancelled" if call.ended else "cancelled, but it did not stop in time"
        return _ended(
            "cancelled" if sure else "unknown", reason, "cancelled" if sure else "outcome_unknown"
        )
    if call.timed_out:
        reason = f"ToolTimedOut: not finished after {call.seconds:g} s"
        if not call.ended:
            reason += ", and it did not stop when asked"
        return _ended("failed" if repeatable else "unknown", reason, "tool_timed_out")
    error = call.error or OutcomeUnknown()
    if stopped and not repeatable:
        return _failure("unknown", error)
    return _failure("unknown" if not repeatable and _ambiguous(error) else "failed", error)


def _ambiguous(error: BaseException) -> bool:
    """True if the effect may have happened although the tool raised this."""
    for link in _chain(error):
        if isinstance(link, _AMBIGUOUS):
            return True
        if isinstance(link, ToolError):
            return False  # the tool says in so many words that it failed
        if any(kind.__name__ in _AMBIGUOUS_NAMES for kind in type(link).__mro__):
            return True
        if _server_failed(link):
            return True
    return False


def _server_failed(error: BaseException) -> bool:
    """True for an HTTP client's error that carries a response of 500 and above: it may have done the work."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    return isinstance(status, int) and status >= 500


def _chain(error: BaseException | None, most: int = 10) -> Iterator[BaseException]:
    while error is not None and most:
        yield error
        error, most = error.__cause__ or error.__context__, most - 1


def _success(returned: Any) -> ToolOutcome:
    value, truncated = results.storable_result(returned, limits().tool_result_bytes)
    return ToolOutcome("succeeded", value, truncated)


def _failure(status: str, error: BaseException) -> ToolOutcome:
    code = error.code if isinstance(error, ToolError) else "tool_failed"
    if status == "unknown":
        code = OutcomeUnknown.code
    text, _ = clip(storable_text(f"{type(error).__name__}: {_text_of(error)}"), ERROR_BYTES)
    return _ended(status, text, code)


def _ended(status: str, reason: str, code: str) -> ToolOutcome:
    return ToolOutcome(status, {"error": reason}, error_code=code)


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001  a broken __str__ must not hide that the tool failed
        return "(its text cannot be read)"

"""How a call ended, and above all when nobody can know."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.db import OperationalError, connection

from runtime_core.errors import OutcomeUnknown, ToolFailed
from runtime_core.limits import limits
from runtime_core.tools import DID_NOT_HAPPEN, Happened, Tool, ToolContext, runner, tool
from tests.tools.conftest import Marker


def made(
    body: Callable[[ToolContext], Any], effect: str = "read", timeout: int = 5, **more: Any
) -> Tool:
    """A tool without arguments that does `body`."""

    def fn(ctx: ToolContext) -> Any:
        """Text."""
        return body(ctx)

    return tool(risk="low", effect=effect, timeout=timeout, name="t", **more)(fn)


def raising(error: BaseException, effect: str = "read") -> Tool:
    def body(ctx: ToolContext) -> None:
        raise error

    return made(body, effect)


@dataclass
class Receipt:
    amount: Decimal
    key: uuid.UUID
    where: Path


def test_a_result_becomes_json(ctx: ToolContext) -> None:
    receipt = Receipt(Decimal("1.50"), uuid.UUID(int=7), Path("a/b"))
    outcome = runner.run(
        made(lambda _: {"receipt": receipt, "set": {1}, "x": float("nan")}), {}, ctx
    )
    assert outcome.status == "succeeded"
    assert outcome.result == {
        "receipt": {"amount": "1.50", "key": str(uuid.UUID(int=7)), "where": "a/b"},
        "set": [1],
        "x": "nan",
    }


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("no")


def _endless() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    "returned",
    [b"\xff\x00", "a\0b\ud800", {"a": b"\xff"}, Unprintable(), _endless(), object(), [10**5000]],
    ids=["bytes", "text", "bytes inside", "unprintable", "endless", "object", "long number"],
)
def test_a_call_that_did_its_work_never_fails_over_its_result(
    ctx: ToolContext, returned: object
) -> None:
    outcome = runner.run(made(lambda _: returned, "once"), {}, ctx)
    assert outcome.status == "succeeded"
    text = json.dumps(outcome.result, ensure_ascii=False)
    assert "\0" not in text and "\\u0000" not in text
    text.encode()


@pytest.mark.parametrize(
    "returned",
    ["x" * 5_000_000, {"output": "\x01" * 1_000_000, "exit_code": 0}, [["a" * 50]] * 50_000,
     {"a": "é" * 200_000, "b": "y" * 200_000, "c": 1}, {str(i): i for i in range(100_000)}],
)  # fmt: skip
def test_a_large_result_is_cut_and_says_so(ctx: ToolContext, returned: Any) -> None:
    outcome = runner.run(made(lambda _: returned), {}, ctx)
    assert outcome.status == "succeeded"
    assert outcome.truncated
    size = len(json.dumps(outcome.result, ensure_ascii=False).encode())
    assert 1_000 < size < limits().tool_result_bytes * 1.1
    if isinstance(returned, dict) and "exit_code" in returned:
        assert outcome.result["exit_code"] == 0


def test_an_error_is_its_type_and_text(ctx: ToolContext) -> None:
    outcome = runner.run(raising(ValueError("no\0 such thing " + "x" * 10_000)), {}, ctx)
    assert (outcome.status, outcome.error_code) == ("failed", "tool_failed")
    assert outcome.result["error"].startswith("ValueError: no␀ such thing")
    assert len(outcome.result["error"]) < 3_000
    assert "Traceback" not in outcome.result["error"]


def _wrapped() -> RuntimeError:
    error = RuntimeError("the payment service")
    error.__cause__ = TimeoutError("read")
    return error


_AMBIGUOUS = [
    TimeoutError("late"),
    ConnectionResetError("gone"),
    BrokenPipeError(),
    OutcomeUnknown("who knows"),
    httpx.ReadTimeout("late"),
    httpx.RemoteProtocolError("cut"),
    OperationalError("server closed the connection"),
    _wrapped(),
]


@pytest.mark.parametrize("error", _AMBIGUOUS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize(
    ("effect", "status"),
    [
        ("read", "failed"),
        ("idempotent", "failed"),
        ("once", "unknown"),
        ("compensatable", "unknown"),
    ],
)
def test_what_may_have_happened_is_unknown(
    ctx: ToolContext, error: BaseException, effect: str, status: str
) -> None:
    more = {"compensate": lambda ctx, result: None} if effect == "compensatable" else {}

    def body(ctx: ToolContext) -> None:
        raise error

    assert runner.run(made(body, effect, **more), {}, ctx).status == status


@pytest.mark.parametrize(
    "error", [ValueError("no"), ToolFailed("refused"), KeyError("x"), SystemExit(1), MemoryError()]
)
def test_what_surely_failed_is_failed(ctx: ToolContext, error: BaseException) -> None:
    assert runner.run(raising(error, "once"), {}, ctx).status == "failed"


def test_a_tool_that_says_it_failed_is_believed(ctx: ToolContext) -> None:
    def body(ctx: ToolContext) -> None:
        try:
            raise ConnectionRefusedError("down")
        except ConnectionRefusedError as error:
            raise ToolFailed("nothing was sent") from error

    assert runner.run(made(body, "once"), {}, ctx).status == "failed"


def _patient(ctx: ToolContext) -> None:
    ctx.stopping.wait(30)
    ctx.check()


def _deaf(ctx: ToolContext) -> None:
    time.sleep(4)


@pytest.mark.parametrize(("effect", "status"), [("read", "failed"), ("once", "unknown")])
@pytest.mark.parametrize("body", [_patient, _deaf])
def test_out_of_time(
    ctx: ToolContext,
    monkeypatch: pytest.MonkeyPatch,
    body: Callable[[ToolContext], None],
    effect: str,
    status: str,
) -> None:
    monkeypatch.setattr(runner, "STOP_GRACE_SECONDS", 0.3)
    started = time.monotonic()
    outcome = runner.run(made(body, effect, timeout=1), {}, ctx)
    assert (outcome.status, outcome.error_code) == (status, "tool_timed_out")
    assert 1.0 <= time.monotonic() - started < 3.5
    assert not ctx.stopping.is_set()  # it belongs to the run, whose other calls go on


def test_the_runs_deadline_comes_before_the_tools(make_ctx: Callable[..., ToolContext]) -> None:
    ctx = make_ctx(deadline=time.monotonic() + 0.2)
    started = time.monotonic()
    assert runner.run(made(_patient), {}, ctx).error_code == "tool_timed_out"
    assert time.monotonic() - started < 1.0


def _cancelled_while_running(ctx: ToolContext, tool: Tool) -> Any:
    timer = threading.Timer(0.2, ctx.stopping.set)
    timer.start()
    try:
        return runner.run(tool, {}, ctx)
    finally:
        timer.join()


@pytest.mark.parametrize(
    ("body", "effect", "status"),
    [
        (_patient, "read", "cancelled"),
        (_patient, "once", "cancelled"),  # it says itself that it stopped and left nothing
        (_deaf, "read", "cancelled"),
        (_deaf, "once", "unknown"),
        (lambda ctx: ctx.stopping.wait(30), "once", "succeeded"),  # it did end after all
    ],
)
def test_cancelled(
    ctx: ToolContext,
    monkeypatch: pytest.MonkeyPatch,
    body: Callable[[ToolContext], Any],
    effect: str,
    status: str,
) -> None:
    monkeypatch.setattr(runner, "STOP_GRACE_SECONDS", 0.3)
    assert _cancelled_while_running(ctx, made(body, effect)).status == status


def test_cancelled_before_it_started(ctx: ToolContext) -> None:
    ran: list[int] = []
    ctx.stopping.set()
    outcome = runner.run(made(lambda _: ran.append(1), "once"), {}, ctx)
    assert (outcome.status, ran) == ("cancelled", [])


def test_cancel_kills_the_command_before_it_says_cancelled(
    ctx: ToolContext, marker: Marker
) -> None:
    def body(ctx: ToolContext) -> None:
        ctx.run_command(["sleep", "300"], env=marker.env)

    threading.Thread(target=lambda: (marker.wait_for(there=True), ctx.stopping.set())).start()
    outcome = runner.run(made(body, "idempotent", timeout=30), {}, ctx)
    assert outcome.status == "cancelled"
    assert marker.processes() == []


def test_arguments_that_do_not_fit_run_nothing(ctx: ToolContext) -> None:
    outcome = runner.run(made(lambda _: 1), {"extra": 1}, ctx)
    assert (outcome.status, outcome.error_code) == ("failed", "invalid_arguments")


def test_progress_is_bounded(make_ctx: Callable[..., ToolContext]) -> None:
    told: list[tuple[str, float | None]] = []
    ctx = make_ctx(on_progress=lambda message, fraction: told.append((message, fraction)))
    runner.run(made(lambda c: (c.progress("half", 0.5), c.progress("x" * 10**6, 7))), {}, ctx)
    assert told[0] == ("half", 0.5)
    assert len(told[1][0]) < 10_000 and told[1][1] == 1.0


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (lambda: Happened({"id": 1}), "succeeded"),
        (lambda: DID_NOT_HAPPEN, None),
        (lambda: "yes", "unknown"),
        (lambda: 1 / 0, "unknown"),
    ],
)
def test_asking_whether_it_happened(
    ctx: ToolContext, answer: Callable[[], Any], status: str | None
) -> None:
    asked = made(lambda _: None, "once", reconcile=lambda ctx: answer())
    outcome = runner.reconcile(asked, {}, ctx)
    assert (outcome and outcome.status) == status
    if status == "succeeded":
        assert outcome is not None and outcome.result == {"id": 1}


def test_a_question_that_gets_no_answer_is_unknown(
    ctx: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "STOP_GRACE_SECONDS", 0.1)
    asked = made(lambda _: None, "once", timeout=1, reconcile=_deaf)
    outcome = runner.reconcile(asked, {}, ctx)
    assert outcome is not None and outcome.status == "unknown"


def test_taking_back(ctx: ToolContext) -> None:
    taken: list[Any] = []
    undo = made(lambda _: 1, "compensatable", compensate=lambda ctx, result: taken.append(result))
    assert runner.compensate(undo, {}, {"id": 7}, ctx).status == "compensated"
    assert taken == [{"id": 7}]


def test_a_question_to_a_person_is_never_run(ctx: ToolContext) -> None:
    from runtime_core.tools.builtin import ask_human

    outcome = runner.run(ask_human, {"question": "Why?"}, ctx)
    assert outcome.status == "failed"


@pytest.mark.django_db(transaction=True)
def test_the_threads_connections_are_closed(ctx: ToolContext) -> None:
    def body(_: ToolContext) -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            return int(cursor.fetchone()[0])

    backend = runner.run(made(body), {}, ctx).result
    until = time.monotonic() + 5
    while time.monotonic() < until:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE pid = %s", [backend])
            if cursor.fetchone()[0] == 0:
                return
    pytest.fail("the connection of the tool's thread is still open")


def http_error(status: int) -> httpx.HTTPStatusError:
    request = httpx.Request("POST", "http://127.0.0.1/charge")
    return httpx.HTTPStatusError("refused", request=request, response=httpx.Response(status))


LOST = [
    httpx.ReadTimeout("x"), ConnectionResetError("x"), http_error(502), TimeoutError("x"),
    httpx.ConnectError("x"),
]  # fmt: skip


def test_d8_only_what_may_be_repeated_is_tried_again_with_one_key_within_its_budget(
    ctx: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "RETRY_SECONDS", 0.001)
    for error in LOST:
        keys: list[str] = []

        def body(inner: ToolContext, error: Exception = error, keys: list[str] = keys) -> str:
            keys.append(inner.idempotency_key)
            raise error

        assert runner.run(made(body, "once"), {}, ctx, 2).status == "unknown", error
        assert len(keys) == 1, "charged once"
        keys.clear()
        assert runner.run(made(body, "idempotent"), {}, ctx, 2).status == "failed", error
        assert len(keys) == 3 and len(set(keys)) == 1

    tries = iter([ConnectionError("x"), None])

    def second_time(_: ToolContext) -> str:
        if error := next(tries):
            raise error
        return "there"

    assert runner.run(made(second_time), {}, ctx, 2).result == "there"
    sure: list[int] = []
    for error in (ValueError("x"), ToolFailed("x"), http_error(404)):
        outcome = runner.run(made(lambda _, e=error: sure.append(1) or raise_(e)), {}, ctx, 2)
        assert outcome.status == "failed"
    assert len(sure) == 3, "what failed for good is not tried again"


def raise_(error: BaseException) -> None:
    raise error


def test_a_stop_ends_the_pause_between_two_tries(ctx: ToolContext) -> None:
    def body(_: ToolContext) -> None:
        ctx.stopping.set()
        raise ConnectionError("x")

    began = time.monotonic()
    runner.run(made(body), {}, ctx, 2)
    assert time.monotonic() - began < 1

"""Case F8: each error of a provider is of the class that says what to do about it."""

from __future__ import annotations

import datetime as dt
import socket
from email.utils import format_datetime
from typing import Any

import pytest

from runtime_core.clock import now
from runtime_core.errors import (
    ContextTooLong,
    ModelError,
    ModelRejected,
    ModelTimeout,
    ModelUnavailable,
    RateLimited,
    Retry,
    SchemaUnsupported,
)
from runtime_core.gateway.errors import retry_after_seconds
from runtime_core.limits import limits
from tests.gateway.conftest import ask, call
from tests.gateway.provider import Provider, Reply, error

MOST = float(limits().deadline_seconds)

CLASSES: list[tuple[Reply, type[ModelError]]] = [
    (
        error(400, "This model's maximum context length is 8192 tokens", "context_length_exceeded"),
        ContextTooLong,
    ),
    (error(400, "prompt is too long: 210000 tokens > 200000 maximum"), ContextTooLong),
    (error(413, "Payload"), ContextTooLong),
    (
        error(429, "Request too large for gpt-5-mini on tokens per min", "rate_limit_exceeded"),
        ContextTooLong,
    ),
    (
        error(400, "Invalid schema for function 'read'", kind="invalid_request_error"),
        SchemaUnsupported,
    ),
    (error(422, "Unprocessable"), ModelRejected),
    (error(401, "Incorrect API key provided", "invalid_api_key"), ModelRejected),
    (error(403, "Country not supported"), ModelRejected),
    (error(404, "The model `x` does not exist", "model_not_found"), ModelRejected),
    (error(402, "Pay"), ModelRejected),
    (
        error(429, "You exceeded your current quota", "insufficient_quota", "insufficient_quota"),
        ModelRejected,
    ),
    (error(429, "Rate limit reached", "rate_limit_exceeded"), RateLimited),
    (error(408, "Timeout"), ModelUnavailable),
    (error(409, "Conflict"), ModelUnavailable),
    (error(500, "Oops"), ModelUnavailable),
    (error(502, "Bad gateway"), ModelUnavailable),
    (error(503, "Overloaded"), ModelUnavailable),
    (error(529, "Overloaded", kind="overloaded_error"), ModelUnavailable),
    (Reply(status=502, body=b"<html>nginx</html>"), ModelUnavailable),
    (Reply(status=400, body={"error": "flat text"}), ModelRejected),
    (Reply(status=418, body=[]), ModelRejected),
]


@pytest.mark.parametrize(("reply", "kind"), CLASSES, ids=range(len(CLASSES)))
def test_f8_a_status_becomes_the_class_that_says_what_to_do(
    provider: Provider, reply: Reply, kind: type[ModelError]
) -> None:
    provider.then(reply)

    with pytest.raises(kind) as caught:
        ask(call())

    assert type(caught.value) is kind
    assert caught.value.data["status"] == reply.status
    assert len(provider.requests) == 1, "neither the SDK nor pydantic-ai retries"
    retried = kind in (RateLimited, ModelUnavailable)
    assert (caught.value.retry is Retry.BACKOFF) is retried


def _in(seconds: float) -> str:
    return format_datetime(
        now().replace(microsecond=0) + dt.timedelta(seconds=seconds), usegmt=True
    )


WAITS: list[tuple[str | None, float | None]] = [
    ("2", 2.0),
    ("0", 0.0),
    ("-5", 0.0),
    ("0.5", 0.5),
    ("2abc", None),
    ("", None),
    ("NaN", None),
    ("Infinity", None),
    ("999999", MOST),
    ("9" * 5000, None),
    (_in(-3600), 0.0),
    (_in(10**6), MOST),
    ("Wed, 99 Foo 2099 00:00:00 GMT", None),
    (None, None),
]


@pytest.mark.parametrize(("header", "seconds"), WAITS, ids=range(len(WAITS)))
@pytest.mark.parametrize(
    ("status", "kind"), [(429, RateLimited), (503, ModelUnavailable), (529, ModelUnavailable)]
)
def test_f8_retry_after_is_read_and_bounded(
    provider: Provider,
    status: int,
    kind: type[ModelError],
    header: str | None,
    seconds: float | None,
) -> None:
    headers: Any = {} if header is None else {"retry_after": header}
    provider.then(error(status, "Slow down", **headers))

    with pytest.raises(kind) as caught:
        ask(call())

    assert caught.value.data.get("retry_after") == seconds


def test_f8_a_future_date_is_that_many_seconds_away() -> None:
    seconds = retry_after_seconds(_in(120))

    assert seconds is not None and 110 < seconds <= 120


def test_f8_milliseconds_come_first() -> None:
    assert retry_after_seconds("9", "1500") == 1.5


def test_a_message_never_holds_the_api_key(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "plain-key-value-123456")
    said = "Incorrect key plain-key-value-123456, also sk-proj-abcdef123456 and Bearer abc.def-ghi"
    provider.then(error(401, said, "invalid_api_key"))

    with pytest.raises(ModelRejected) as caught:
        ask(call())

    shown = f"{caught.value} {caught.value.data}"
    assert "Incorrect key [secret]" in shown
    assert not any(secret in shown for secret in ("plain-key", "sk-proj", "abc.def"))
    assert caught.value.__cause__ is None


def test_a_provider_that_is_not_there_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    with Provider() as gone:
        url = gone.base_url
    monkeypatch.setenv("OPENAI_BASE_URL", url)

    with pytest.raises(ModelUnavailable, match="base URL"):
        ask(call())


def test_a_provider_that_cannot_be_connected_to_in_time_is_a_timeout(
    monkeypatch: pytest.MonkeyPatch, limited: Any
) -> None:
    limited(model_connect_seconds=0.3)
    with socket.socket() as deaf, socket.socket() as waiting, socket.socket() as queued:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        for client in (waiting, queued):  # fill the queue of connections that nobody accepts
            client.setblocking(False)
            client.connect_ex(deaf.getsockname())
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{deaf.getsockname()[1]}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "none")

        with pytest.raises(ModelTimeout, match="connect"):
            ask(call())

"""A provider of one's own for each test, and limits that can be made short."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from runtime_core import gateway
from runtime_core.gateway import Answer, ModelCall, TextDelta
from runtime_core.gateway import bounds as gateway_bounds
from runtime_core.gateway import errors as gateway_errors
from runtime_core.gateway import loop as gateway_loop
from runtime_core.gateway.messages import user_request
from runtime_core.limits import limits
from runtime_core.values import Effect, Risk, ToolSpec
from tests.gateway.provider import Provider

SPEC = ToolSpec(
    name="read",
    description="Read a file.",
    schema={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    risk=Risk.LOW,
    effect=Effect.READ,
    timeout_seconds=5,
    digest="0" * 64,
)


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    """A running provider that the openai models talk to."""
    with Provider() as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield running


@pytest.fixture(scope="session", autouse=True)
def ended_loop() -> Iterator[None]:
    """End the gateway's loop with the session."""
    yield
    gateway.stop_loop()


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Change limits for this test."""

    def change(**changes: Any) -> None:
        changed = dataclasses.replace(limits(), **changes)
        for module in (gateway_bounds, gateway_errors, gateway_loop):
            monkeypatch.setattr(module, "limits", lambda: changed)

    return change


def call(*messages: Any, **more: Any) -> ModelCall:
    """A call to the local provider's model."""
    fields = {"model": "openai-chat:gpt-5-mini", "script": None, "instructions": "Be brief."}
    return ModelCall(
        **{**fields, "messages": messages or (user_request("Hi"),), "tools": (SPEC,), **more}
    )


def ask(model_call: ModelCall) -> tuple[str, Answer]:
    """The text as it was streamed, and the answer."""
    *deltas, answer = gateway.stream(model_call, threading.Event())
    assert isinstance(answer, Answer)
    return "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)), answer

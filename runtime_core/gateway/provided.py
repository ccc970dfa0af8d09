"""Models of providers, by pydantic-ai. Heavy to import, and only workers ever ask a model: imported on use."""

from __future__ import annotations

import os
from typing import Any

from pydantic_ai.models import Model, infer_model
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers import Provider, infer_provider, infer_provider_class
from pydantic_ai.providers.openai import OpenAIProvider

from runtime_core.errors import ModelNotConfigured
from runtime_core.gateway.loop import LoopThread
from runtime_core.gateway.toolcalls import with_checked_streams

_OPENAI_FAMILY = OpenAIProvider.__bases__[0]
"""The base of all providers behind the OpenAI SDK: they share the loop's HTTP client."""


def provided_model(spec: str, loop: LoopThread) -> Model[Any]:
    """The model that `spec` names; on the loop only. Raises ModelNotConfigured, saying what to set."""
    model: Model[Any] = infer_model(_wire(spec), lambda name: _provider(name, loop))
    if isinstance(model, OpenAIChatModel):
        with_checked_streams(model)
    return model


def _wire(spec: str) -> str:
    # pydantic-ai reads `openai:` as OpenAI's Responses API. A server of one's own, which is what a
    # base URL is for, speaks chat completions; `openai-responses:` still asks for the other one.
    if spec.startswith("openai:") and os.environ.get("OPENAI_BASE_URL"):
        return "openai-chat:" + spec.removeprefix("openai:")
    return spec


def _provider(name: str, loop: LoopThread) -> Provider[Any]:
    try:
        provider_class = infer_provider_class(name)
    except ValueError:
        raise ModelNotConfigured(
            f"There is no model provider {name!r}; a model is named like openai-chat:gpt-5-mini."
        ) from None
    if issubclass(provider_class, _OPENAI_FAMILY):
        return provider_class(http_client=loop.http())  # type: ignore[call-arg]
    return infer_provider(name)

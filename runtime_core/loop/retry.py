"""What follows a failed model request: a function of values.

Two budgets bound it: so many failures in a row, and so many in one attempt of a run, whatever they were. Every model
that a run may use draws on the same two.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from runtime_core.errors import (
    InterlockError,
    ModelTimeout,
    ModelUnavailable,
    RateLimited,
    Retry,
)
from runtime_core.limits import limits
from runtime_core.values import Json

# Another model helps where this one cannot be had; it must never be a way around a refusal.
_AVAILABILITY = (ModelUnavailable, RateLimited, ModelTimeout)
_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Attempt:
    """How the next request differs from the agent's plain one; kept with the step that failed."""

    model: str | None = None
    """The fallback that is asked; None: the agent's own model."""
    tries: int = 0
    """How often in a row this model has failed."""
    stop: str = ""
    """Why the run ends instead, if a person said so."""
    plain_schemas: bool = False
    """Send the tools' schemas without what the provider said it does not know."""

    def stored(self) -> dict[str, Json]:
        """The row's own copy."""
        return {"model": self.model, "tries": self.tries, "plain_schemas": self.plain_schemas}

    @property
    def differs(self) -> dict[str, Json]:
        """What a step and its span say of a request that was not the agent's plain one."""
        said: dict[str, Json] = {"fallback": self.model} if self.model else {}
        return said | ({"plain_schemas": True} if self.plain_schemas else {})

    @classmethod
    def of(cls, stored: Mapping[str, Json] | None) -> Self:
        """What such a copy says; the plain request where there is none."""
        found = stored or {}
        return cls(
            model=found.get("model"),
            tries=int(found.get("tries", 0)),
            plain_schemas=bool(found.get("plain_schemas", False)),
        )

    def after_success(self) -> Attempt:
        """The next turn begins with the agent's own model again; a schema stays as plain as it had to be."""
        return Attempt(plain_schemas=self.plain_schemas)


@dataclass(frozen=True, slots=True)
class Failures:
    """How often requests have failed, this one included: in a row, and in this attempt of the run."""

    in_a_row: int
    in_all: int


@dataclass(frozen=True, slots=True)
class Again:
    """Ask once more, in so many seconds, in this way."""

    seconds: float
    attempt: Attempt


def after(
    error: InterlockError,
    failures: Failures,
    attempt: Attempt,
    fallbacks: Sequence[str] = (),
    jitter: float | None = None,
) -> Again | None:
    """How to go on after `error`; None: give up."""
    if error.retry is Retry.PLAIN_SCHEMAS:
        return None if attempt.plain_schemas else Again(0.0, replace(attempt, plain_schemas=True))
    if error.retry is not Retry.BACKOFF:
        return None
    bounds = limits()
    if failures.in_a_row > bounds.model_retries or failures.in_all > bounds.model_retries_per_run:
        return None
    tried = replace(attempt, tries=attempt.tries + 1)
    seconds = delay(error, tried.tries, jitter)
    other = next_model(attempt.model, fallbacks) if isinstance(error, _AVAILABILITY) else None
    if other and (tried.tries >= bounds.fallback_after or seconds > bounds.park_after_seconds):
        return Again(0.0, replace(tried, model=other, tries=0))
    return Again(seconds, tried)


def delay(error: InterlockError, tries: int, jitter: float | None = None) -> float:
    """Seconds to wait after so many failures of one model: anything from none to a step that doubles each time.

    A provider's Retry-After is honoured: never sooner than it asks.
    """
    bounds = limits()
    step = min(bounds.backoff_base_seconds * 2.0 ** (tries - 1), bounds.backoff_max_seconds)
    part = random.random() if jitter is None else jitter  # noqa: S311 - not for secrets
    asked: object = error.data.get("retry_after")
    if isinstance(asked, int | float) and asked >= 0:
        return float(min(max(asked, step * part), _DAY))
    return step * part


def next_model(model: str | None, fallbacks: Sequence[str]) -> str | None:
    """The model after this one in the order that the agent names; None after the last."""
    if model is None:
        return fallbacks[0] if fallbacks else None
    rest = list(fallbacks)[fallbacks.index(model) + 1 :] if model in fallbacks else []
    return rest[0] if rest else None

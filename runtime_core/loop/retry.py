"""Whether a failed model request is tried again, and when: a function of values."""

from __future__ import annotations

import random

from runtime_core.errors import InterlockError, Retry
from runtime_core.limits import limits


def delay(error: InterlockError, failures: int, jitter: float | None = None) -> float | None:
    """Seconds to wait before the next try after `failures` in a row (this one included); None: give up.

    Exponential with full jitter from half the step up; a provider's Retry-After is honoured up to the maximum.
    """
    bounds = limits()
    if error.retry is not Retry.BACKOFF or failures > bounds.model_retries:
        return None
    doubled = bounds.backoff_base_seconds * float(2 ** (failures - 1))
    step = min(doubled, bounds.backoff_max_seconds)
    part = random.random() if jitter is None else jitter  # noqa: S311 - not for secrets
    asked: object = error.data.get("retry_after")
    if isinstance(asked, int | float) and asked >= 0:
        # Never sooner than asked, even where that is longer than our own longest wait.
        return float(min(max(asked, step / 2), 86_400))
    return step * (0.5 + part / 2)

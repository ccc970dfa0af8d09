"""What a run may still spend: a function of values."""

from __future__ import annotations

from runtime_core.values import RunLimits, Usage


def spent(limits: RunLimits, steps: int, usage: Usage) -> str | None:
    """Which budget is used up, in words for a person; None if the run may go on."""
    tokens = usage.input_tokens + usage.output_tokens
    if steps >= limits.max_steps:
        return f"All {limits.max_steps} steps are used."
    if tokens >= limits.max_tokens:
        return f"{tokens} of {limits.max_tokens} tokens are used."
    if usage.cost_microusd >= limits.max_cost_usd * 1_000_000:
        return f"${usage.cost_microusd / 1e6:.2f} of ${limits.max_cost_usd:.2f} is spent."
    return None

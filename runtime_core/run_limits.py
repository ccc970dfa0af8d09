"""What a run may spend, as somebody asked for it: checked, completed from the deployment's defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runtime_core.errors import InvalidInput
from runtime_core.limits import limits

BOUNDS: dict[str, tuple[int, int]] = {
    "max_steps": (1, 1_000),
    "max_tokens": (1, 50_000_000),
    "max_cost_usd": (0, 10_000),
    "deadline_s": (1, 7 * 24 * 3600),
}


PRIORITY = (-10, 10)


@dataclass(frozen=True, slots=True)
class RequestedLimits:
    """Complete limits of a run, as its row stores them."""

    max_steps: int
    max_tokens: int
    max_cost_microusd: int
    deadline_s: int


def requested(given: Mapping[str, Any]) -> RequestedLimits:
    """Limits for a run from what is given; InvalidInput names the field that is unknown, mistyped or out of bounds."""
    defaults = limits()
    values: dict[str, Any] = {
        "max_steps": defaults.max_steps,
        "max_tokens": defaults.max_tokens,
        "max_cost_usd": defaults.max_cost_usd,
        "deadline_s": defaults.deadline_seconds,
    }
    for name, value in given.items():
        values[name] = _checked(name, value)
    return RequestedLimits(
        values["max_steps"],
        values["max_tokens"],
        round(values["max_cost_usd"] * 1_000_000),
        values["deadline_s"],
    )


def priority(value: Any) -> int:
    """How early among its project's runs: the higher, the sooner; InvalidInput outside of the bounds."""
    low, high = PRIORITY
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidInput(
            f"priority: a whole number from {low} to {high}, not {str(value)[:40]!r}.",
            field="priority",
        )
    return value


def _checked(name: str, value: Any) -> Any:
    if name not in BOUNDS:
        known = ", ".join(BOUNDS)
        raise InvalidInput(f"limits.{name}: unknown; there are {known}.", field=f"limits.{name}")
    low, high = BOUNDS[name]
    kinds = (int, float) if name == "max_cost_usd" else (int,)
    if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= high:
        raise InvalidInput(
            f"limits.{name}: a number from {low} to {high}, not {str(value)[:40]!r}.",
            field=f"limits.{name}",
        )
    return value

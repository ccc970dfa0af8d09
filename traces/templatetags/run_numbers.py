"""Numbers of a run for templates: what it used, and how long it took."""

from __future__ import annotations

import datetime as dt

from django import template

from runtime_core import clock
from runtime_core.models import Run

register = template.Library()


@register.filter
def tokens_of(run: Run) -> int:
    """Tokens in and out."""
    return run.input_tokens + run.output_tokens


@register.filter
def cost_of(run: Run) -> float:
    """Cost in US dollars."""
    return run.cost_microusd / 1e6


@register.filter
def took(run: Run) -> dt.timedelta:
    """From its creation to its end, or until now."""
    return (run.ended_at or clock.now()) - run.created_at

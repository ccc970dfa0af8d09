"""The limits of a run as form fields: to start with, and to top up."""

from __future__ import annotations

from typing import Any

from django import forms

from runtime_core.models import Run
from runtime_core.run_limits import BOUNDS

_STEPS, _TOKENS, _COST, _SECONDS = (
    BOUNDS[name] for name in ("max_steps", "max_tokens", "max_cost_usd", "deadline_s")
)


class LimitFields(forms.Form):
    """What a run may spend; an empty field takes the agent's own limit."""

    max_steps = forms.IntegerField(
        label="Steps",
        min_value=_STEPS[0],
        max_value=_STEPS[1],
        required=False,
        help_text="Model and tool steps.",
    )
    max_tokens = forms.IntegerField(
        label="Tokens",
        min_value=_TOKENS[0],
        max_value=_TOKENS[1],
        required=False,
        help_text="In and out, together.",
    )
    max_cost_usd = forms.DecimalField(
        label="Cost",
        min_value=_COST[0],
        max_value=_COST[1],
        decimal_places=4,
        required=False,
        help_text="US dollars, for the whole run.",
    )
    deadline_min = forms.IntegerField(
        label="Deadline",
        min_value=1,
        max_value=_SECONDS[1] // 60,
        required=False,
        help_text="Minutes of work; waiting for people does not count.",
    )

    def limits(self) -> dict[str, Any]:
        """The limits that were given, as the commands take them."""
        given = self.cleaned_data
        found: dict[str, Any] = {
            name: given[name] for name in ("max_steps", "max_tokens") if given.get(name)
        }
        if given.get("max_cost_usd") is not None:
            found["max_cost_usd"] = float(given["max_cost_usd"])
        if given.get("deadline_min"):
            found["deadline_s"] = given["deadline_min"] * 60
        return found


class TopUpForm(LimitFields):
    """New totals for a paused run; each must leave room above what is used."""

    def __init__(self, *args: Any, run: Run, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.run = run
        shown = {
            "max_steps": run.max_steps,
            "max_tokens": run.max_tokens,
            "max_cost_usd": f"{run.max_cost_microusd / 1e6:g}",
            "deadline_min": run.deadline_s // 60,
        }
        for name, value in shown.items():
            self.fields[name].widget.attrs["placeholder"] = str(value)

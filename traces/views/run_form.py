"""The form that starts a run."""

from __future__ import annotations

from typing import Any

from django import forms
from django.db.models import QuerySet

from runtime_core.errors import InterlockError
from runtime_core.ids import new_id
from runtime_core.limits import limits
from runtime_core.models import Agent
from traces.views.limits_form import LimitFields


class AgentChoice(forms.ModelChoiceField):  # type: ignore[type-arg]  # not generic at run time
    """An agent by name; the project is named too where there is more than one."""

    many_projects = False

    def label_from_instance(self, agent: Agent) -> str:
        """What the list shows."""
        return f"{agent.name} ({agent.project.name})" if self.many_projects else agent.name


class RunForm(LimitFields):
    """Agent, task and limits; `key` makes a form that is sent twice start one run."""

    agent = AgentChoice(queryset=Agent.objects.none(), empty_label=None)
    input = forms.CharField(
        label="Task",
        widget=forms.Textarea(attrs={"rows": 6, "spellcheck": "true"}),
        error_messages={"required": "Say what the agent should do."},
        strip=False,
    )
    key = forms.UUIDField(widget=forms.HiddenInput)
    field_order = [
        "agent",
        "input",
        "max_steps",
        "max_tokens",
        "max_cost_usd",
        "deadline_min",
        "key",
    ]

    def __init__(self, *args: Any, agents: QuerySet[Agent], **kwargs: Any) -> None:
        kwargs["initial"] = {"key": new_id(), **_known_agent(agents, kwargs.get("initial"))}
        super().__init__(*args, **kwargs)
        choice = self.fields["agent"]
        assert isinstance(choice, AgentChoice)  # noqa: S101
        choice.queryset = agents
        choice.many_projects = agents.values("project").distinct().count() > 1
        self._show_limits()

    def clean_input(self) -> str:
        """The task, neither empty nor larger than the runtime takes."""
        text = str(self.cleaned_data["input"]).replace("\r\n", "\n")
        size = len(text.encode("utf-8", "replace"))
        if not text.strip():
            raise forms.ValidationError("Say what the agent should do.")
        if size > limits().input_bytes:
            raise forms.ValidationError(
                f"{size:,} bytes are too many; at most {limits().input_bytes:,} are taken. "
                "Put long material where the agent can read it, and name the place here."
            )
        return text

    def limit_fields(self) -> list[forms.BoundField]:
        """The fields that bound the run."""
        return [self[name] for name in LimitFields.base_fields]

    def _show_limits(self) -> None:
        bounds = limits()
        shown = {
            "max_steps": bounds.max_steps,
            "max_tokens": bounds.max_tokens,
            "max_cost_usd": bounds.max_cost_usd,
            "deadline_min": bounds.deadline_seconds // 60,
        }
        for name, value in shown.items():
            self.fields[name].widget.attrs["placeholder"] = f"{value}"


def error_field(form: RunForm, error: InterlockError) -> str | None:
    """The field that an error of the core belongs to; None for the form as a whole."""
    name = str(error.data.get("field", "")).removeprefix("limits.")
    name = {"deadline_s": "deadline_min"}.get(name, name)
    return name if name in form.fields else None


def _known_agent(agents: QuerySet[Agent], initial: dict[str, Any] | None) -> dict[str, Any]:
    wanted = (initial or {}).get("agent")
    found = agents.filter(name=wanted).first() if wanted else None
    return {"agent": found.id} if found else {}

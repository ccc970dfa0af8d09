"""Agents from their definitions: checked whole, stored as immutable versions, permissions as rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runtime_core import ports
from runtime_core.engines import engine_of
from runtime_core.errors import InvalidInput
from runtime_core.models import Agent, AgentVersion, Project, ToolPermission
from runtime_core.run_limits import requested
from runtime_core.sanitize import canonical, storable
from runtime_core.tools import registry
from runtime_core.tools.builtin.delegate import DELEGATE
from runtime_core.tools.builtin.question import MODEL_FAILED
from runtime_core.tools.ledger import digest_of
from runtime_core.tools.permission import Rule, parse_permissions
from runtime_core.transactions import one_commit
from runtime_core.values import Actor, Audit, Json

FIELDS = {
    "name": str,
    "project": str,
    "engine": str,
    "graph": str,
    "model": str,
    "script": str,
    "instructions": str,
    "tools": list,
    "permissions": dict,
    "limits": dict,
    "workspace": str,
    "context_tokens": int,
    "compensate": str,
    "agents": list,
    "fallback_models": list,
    "on_model_failure": str,
}
COMPENSATE = ("ask", "auto")
MOST_FALLBACKS = 5
ON_MODEL_FAILURE = ("fail", "ask")
CONTEXT_TOKENS = (1_000, 10_000_000)
_STORED = (
    "name", "engine", "graph", "model", "script", "instructions", "tools", "limits", "workspace",
    "context_tokens", "compensate",
    "agents", "fallback_models", "on_model_failure",
)  # fmt: skip


def apply_agent(
    actor: Actor, project: Project, definition: Mapping[str, Any]
) -> tuple[AgentVersion, bool]:
    """The agent's version for this definition, and whether anything was new. InvalidInput names the field.

    Permissions become rows only where the agent has none yet: afterwards they belong to the admin.
    """
    clean = check(definition)
    stored = {key: clean[key] for key in _STORED if key in clean}
    rules = parse_permissions(clean.get("permissions", {}))
    digest = digest_of(canonical(stored))
    with one_commit("agent"):
        agent, _ = Agent.objects.get_or_create(project=project, name=clean["name"])
        agent = (
            Agent.objects.select_for_update(of=("self",)).select_related("current").get(id=agent.id)
        )
        _permit(agent, rules)
        if agent.current is not None and agent.current.digest == digest:
            return agent.current, False
        number = (agent.current.number if agent.current else 0) + 1
        version = AgentVersion.objects.create(
            agent=agent, number=number, definition=stored, digest=digest
        )
        agent.current = version
        agent.save(update_fields=["current"])
        ports.audit().record(
            [
                Audit(
                    "agent.applied",
                    actor,
                    "agent",
                    str(agent.id),
                    project_id=project.id,
                    data={"name": agent.name, "version": number, "digest": digest},
                )
            ]
        )
    return version, True


def check(definition: Mapping[str, Any]) -> dict[str, Json]:
    """A complete definition; InvalidInput says which field is missing, unknown or of the wrong type."""
    if not isinstance(definition, Mapping):
        raise InvalidInput("An agent is a mapping with at least `name` and `instructions`.")
    for key, value in definition.items():
        if key not in FIELDS:
            raise InvalidInput(
                f"{key}: unknown field; there are {', '.join(FIELDS)}.", field=str(key)
            )
        if not isinstance(value, FIELDS[key]):
            raise InvalidInput(f"{key}: must be a {FIELDS[key].__name__}.", field=str(key))
    clean: dict[str, Any] = dict(storable(dict(definition)))
    if not clean.get("name", "").replace("-", "").replace("_", "").isalnum():
        raise InvalidInput("name: letters, digits, - and _ only, e.g. refund-desk.", field="name")
    clean.setdefault("engine", "react")
    clean.setdefault("instructions", "")
    clean.setdefault("tools", [])
    clean.setdefault("limits", {})
    known = registry()  # which loads the graphs too
    engine_of(clean)
    requested(clean["limits"])
    if clean.get("compensate", "ask") not in COMPENSATE:
        raise InvalidInput(f"compensate: {' or '.join(COMPENSATE)}.", field="compensate")
    _check_context(clean.get("context_tokens", CONTEXT_TOKENS[0]))
    _check_agents(clean)
    _check_model_failure(clean)
    if MODEL_FAILED in clean["tools"]:
        raise InvalidInput(
            f"tools: {MODEL_FAILED} is the runtime's own; set on_model_failure: ask.", field="tools"
        )
    for name in clean["tools"]:
        if name not in known:
            raise InvalidInput(
                f"tools: there is no tool {name!r}; list its module in TOOL_MODULES.", field="tools"
            )
    return clean


def _check_context(tokens: int) -> None:
    least, most = CONTEXT_TOKENS
    if isinstance(tokens, bool) or not least <= tokens <= most:
        raise InvalidInput(
            f"context_tokens: a whole number from {least} to {most}, not {tokens}.",
            field="context_tokens",
        )


def _check_model_failure(clean: dict[str, Any]) -> None:
    """What happens where the agent's model cannot be had."""
    models = clean.get("fallback_models", [])
    named = all(isinstance(name, str) and ":" in name for name in models)
    if not named or len(models) > MOST_FALLBACKS or len(set(models)) < len(models):
        raise InvalidInput(
            f"fallback_models: at most {MOST_FALLBACKS} different models, each like openai-chat:gpt-5-mini.",
            field="fallback_models",
        )
    if clean.get("on_model_failure", "fail") not in ON_MODEL_FAILURE:
        raise InvalidInput(
            f"on_model_failure: one of {', '.join(ON_MODEL_FAILURE)}.", field="on_model_failure"
        )


def _check_agents(clean: dict[str, Any]) -> None:
    """A supervisor names the agents that it may hand work to, and has the tool to do so."""
    names = clean.get("agents", [])
    if not all(isinstance(name, str) and name for name in names):
        raise InvalidInput("agents: a list of names of agents of this project.", field="agents")
    if clean["engine"] == "supervisor":
        if not names:
            raise InvalidInput(
                "agents: a supervisor needs the names of the agents that it may hand work to.",
                field="agents",
            )
        if DELEGATE not in clean["tools"]:
            clean["tools"] = [*clean["tools"], DELEGATE]
    elif bool(names) != (DELEGATE in clean["tools"]):
        raise InvalidInput(
            f"agents: they go with the tool {DELEGATE}; an agent has both or neither.",
            field="agents",
        )


def _permit(agent: Agent, rules: list[Rule]) -> None:
    if not rules or agent.permissions.exists():
        return
    ToolPermission.objects.bulk_create(
        ToolPermission(
            agent=agent,
            tool=rule.tool,
            verdict=rule.verdict.value,
            constraints=dict(rule.constraints),
        )
        for rule in rules
    )

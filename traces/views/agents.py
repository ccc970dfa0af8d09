"""Agents: what each one is, which tools it has and what it may do with them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from runtime_core import queries as core_queries
from runtime_core.access import Can
from runtime_core.models import Agent, ToolPermission
from runtime_core.sanitize import canonical
from runtime_core.tools import registry
from runtime_core.tools.permission import Rule, decide
from runtime_core.values import ToolSpec, Verdict
from traces import queries
from traces.gate import redactor
from traces.pages import caller, page

_VERDICT_TONES = {"allow": "ok", "ask": "wait", "deny": "bad"}


@dataclass(frozen=True, slots=True)
class ToolRow:
    """One tool of an agent; `spec` is None if this deployment does not have it."""

    name: str
    spec: ToolSpec | None
    verdict: str
    tone: str
    why: str
    rules: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class AgentCard:
    """One agent with its tools."""

    agent: Agent
    definition: Mapping[str, object]
    tools: list[ToolRow]
    may_start: bool


@page
@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """The agents of the projects that this person can see."""
    who = caller(request)
    cursor = request.GET.get("cursor") or None
    found = core_queries.agents(who.projects(), cursor=cursor)
    startable = set(queries.projects_where(who, Can.OPERATE).values_list("id", flat=True))
    rules = _rules([agent.id for agent in found.items])
    cards = [
        AgentCard(
            agent,
            redactor().redact(agent.current.definition).value if agent.current else {},
            [_tool(name, rules.get(agent.id, [])) for name in _tool_names(agent)],
            agent.project_id in startable,
        )
        for agent in found.items
    ]
    context = {
        "cards": cards,
        "next_url": f"?cursor={found.next_cursor}" if found.next_cursor else "",
        "may_change": request.user.is_staff,
    }
    return render(request, "traces/agents.html", context)


def _tool_names(agent: Agent) -> list[str]:
    return list(agent.current.definition.get("tools", [])) if agent.current else []


def _rules(agent_ids: list[uuid.UUID]) -> dict[uuid.UUID, list[Rule]]:
    found: dict[uuid.UUID, list[Rule]] = {}
    for row in ToolPermission.objects.filter(agent__in=agent_ids).order_by("tool", "id"):
        rule = Rule(str(row.id), row.tool, Verdict(row.verdict), row.constraints or {})
        found.setdefault(row.agent_id, []).append(rule)
    return found


def _tool(name: str, rules: list[Rule]) -> ToolRow:
    tool = registry().get(name)
    if tool is None:
        return ToolRow(name, None, "deny", "bad", "This deployment has no tool of that name.")
    plain = [rule for rule in rules if not rule.constraints]
    narrowed = [rule for rule in rules if rule.constraints and _covers(rule, name)]
    decision = decide(plain, tool.spec, {})
    return ToolRow(
        name,
        tool.spec,
        decision.verdict.value,
        _VERDICT_TONES[decision.verdict.value],
        decision.reason,
        [f"{rule.verdict.value} if {canonical(dict(rule.constraints))}" for rule in narrowed],
    )


def _covers(rule: Rule, name: str) -> bool:
    return fnmatchcase(name, rule.tool)

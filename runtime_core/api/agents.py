"""Agents and tools over HTTP: what there is to run."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Router

from runtime_core import queries
from runtime_core.api.auth import caller
from runtime_core.api.schemas import AgentOut, AgentsOut, ToolOut, ToolsOut
from runtime_core.tools import registry

agents = Router(tags=["agents"])
tools = Router(tags=["agents"])


@agents.get("", response=AgentsOut, summary="List agents")
def list_agents(request: HttpRequest, cursor: str = "", limit: int | None = None) -> AgentsOut:
    """The agents of the projects that you can see, in their current version."""
    page = queries.agents(caller(request).projects(), cursor=cursor, limit=limit)
    items = [AgentOut.of(agent) for agent in page.items]
    return AgentsOut(items=items, next_cursor=page.next_cursor)


@tools.get("", response=ToolsOut, by_alias=True, summary="List tools")
def list_tools(request: HttpRequest) -> ToolsOut:
    """Every tool that this deployment has, with schema, risk and effect; which agent may use it is for its agent."""
    items = [ToolOut.of(tool) for _, tool in sorted(registry().items())]
    return ToolsOut(items=items, next_cursor=None)

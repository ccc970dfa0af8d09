"""Puts the API together: each app's routers under `/api/v1`, one way in, one form of error."""

from __future__ import annotations

from ninja import NinjaAPI

from approvals.api import router as interrupts
from approvals.sharing_api import router as sharing
from runtime_core.api import agents, events, problems, runs, threads
from runtime_core.api.auth import CallerAuth
from runtime_core.api.json_body import StrictParser
from traces.api import router as traces
from traces.deletion.api import router as deletions
from traces.exports.api import router as exports

api = NinjaAPI(
    title="Interlock",
    version="1",
    description="Runs agents until it matters, then a person decides.",
    urls_namespace="api",
    auth=CallerAuth(),
    parser=StrictParser(),
    docs_url=None,  # its page loads scripts from elsewhere; the schema itself is at /openapi.json
)
problems.register(api)

api.add_router("/runs", runs.router)
api.add_router("/runs", events.router)
api.add_router("/threads", threads.router)
api.add_router("/agents", agents.agents)
api.add_router("/tools", agents.tools)
api.add_router("", interrupts)
api.add_router("", sharing)
api.add_router("", traces)
api.add_router("", deletions)
api.add_router("/exports", exports)

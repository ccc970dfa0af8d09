"""From the stored rows back to the picture a worker works with: verified first, then restored, never guessed."""

from __future__ import annotations

import json
from typing import Any

from runtime_core import ports
from runtime_core.checkpoints import snapshot
from runtime_core.engines import engine
from runtime_core.errors import StateUnusable
from runtime_core.gateway import messages as wire
from runtime_core.loop.work import Work
from runtime_core.models import Checkpoint, Message, Run, ToolPermission
from runtime_core.tools import ledger, registry, workspace
from runtime_core.tools.permission import Rule
from runtime_core.tools.registry import Tool
from runtime_core.transitions import Seen
from runtime_core.values import Claim, RunLimits, Usage, Verdict


def load_run(claim: Claim) -> Run:
    """The claimed run with its agent and version."""
    return Run.objects.select_related("agent", "agent_version", "thread").get(id=claim.run_id)


def restore(claim: Claim, run: Run) -> Work:
    """The run's picture: newest checkpoint, verified against its messages; then messages, ledger, counters, workspace.

    StateUnusable if anything stored does not verify; WorkspaceError if the workspace cannot be made.
    """
    definition: dict[str, Any] = run.agent_version.definition
    rows = list(
        Message.objects.filter(thread_id=run.thread_id)
        .order_by("position")
        .values_list("run_id", "step", "body")
    )
    own = [body for run_id, _, body in rows if run_id == run.id]
    began = run.next_step > 0  # else there is nothing of it yet but what it was asked
    checkpoint = Checkpoint.objects.filter(run_id=run.id).order_by("-id").first() if began else None
    rolling = snapshot.verify(checkpoint, own)
    try:
        history = [wire.load(json.loads(body)) for _, _, body in rows]
    except ValueError as error:
        raise StateUnusable("A message of the conversation cannot be read any more.") from error
    last_step = rows[-1][1] if rows else -1
    calls = [call for call in ledger.load(run.id) if call.step == last_step] if began else []
    tools = registry()
    work = Work(
        claim=claim,
        seen=Seen(run.version, run.last_seq, run.cancel_requested_at is not None, False),
        run=run,
        definition=definition,
        engine=engine(definition.get("engine", "react")),
        tools=_own_tools(definition, tools),
        rules=rules_of(run),
        limits=limits_of(run),
        history=history,
        position=len(rows),
        own_messages=len(own),
        rolling=rolling,
        calls=calls,
        next_step=run.next_step,
        steps=run.steps,
        usage=Usage(run.input_tokens, run.output_tokens, run.cost_microusd),
        model_failures=run.model_failures,
    )
    if work.view.answered:
        work.output = ports.redactor().text(wire.text_of(history[-1]))  # type: ignore[arg-type]
    if definition.get("workspace"):
        work.workspace = workspace.prepare(run.id, definition["workspace"])
    return work


def _own_tools(definition: dict[str, Any], tools: Any) -> dict[str, Tool]:
    """The agent's tools that this process knows; one that is gone is told to the model when it is called."""
    return {name: tools[name] for name in definition.get("tools", []) if name in tools}


def rules_of(run: Run) -> list[Rule]:
    """The permissions of the run's agent as they are now."""
    return [
        Rule(str(row.id), row.tool, Verdict(row.verdict), row.constraints or {})
        for row in ToolPermission.objects.filter(agent_id=run.agent_id)
    ]


def limits_of(run: Run) -> RunLimits:
    """What the run may spend."""
    return RunLimits(run.max_steps, run.max_tokens, run.max_cost_microusd / 1e6, run.deadline_s)

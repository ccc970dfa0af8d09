"""From the stored rows back to the picture a worker works with: verified first, then restored, never guessed."""

from __future__ import annotations

import functools
import json
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic_ai.messages import ModelMessage

from runtime_core import ports
from runtime_core.checkpoints import graph_state, snapshot, store
from runtime_core.checkpoints.graph_state import GraphState
from runtime_core.engines import COMPENSATE, engine_of
from runtime_core.errors import SealBroken, StateUnusable
from runtime_core.gateway import messages as wire
from runtime_core.loop import escalation
from runtime_core.loop.children import with_children
from runtime_core.loop.retry import Attempt
from runtime_core.loop.work import Work
from runtime_core.models import AgentVersion, Checkpoint, Message, Run, Step, ToolPermission
from runtime_core.prepared import instances
from runtime_core.tools import ledger, registry, workspace
from runtime_core.tools.permission import Rule
from runtime_core.tools.registry import Tool
from runtime_core.transitions import Seen
from runtime_core.values import Claim, RunLimits, Usage, Verdict


def load_run(claim: Claim) -> Run:
    """The claimed run with its agent and version."""
    [run] = instances(Run, "WHERE id = %(run)s", run=claim.run_id)
    run.agent_version = _version(run.agent_version_id)
    run.agent = run.agent_version.agent
    return run


@functools.lru_cache(maxsize=256)
def _version(version_id: uuid.UUID) -> AgentVersion:
    """A version with its agent: it never changes, so a process reads it once."""
    return AgentVersion.objects.select_related("agent").get(id=version_id)


def restore(claim: Claim, run: Run) -> Work:
    """The run's picture, in the order that risks least.

    The newest checkpoint is verified against the messages that it covers, then the workspace; only then messages,
    counters, budget and ledger are restored. StateUnusable if anything does not verify; WorkspaceError if a new
    run's workspace cannot be made.
    """
    definition: dict[str, Any] = run.agent_version.definition
    began = run.next_step > 0  # else there is nothing of it yet but what it was asked
    rows = _messages(run)
    own = [body for run_id, _, body in rows if run_id == run.id]
    verified = snapshot.verify(_checkpoint(run, rows) if began else None, own)
    place = _workspace(run, definition.get("workspace"), began)
    history = _history(rows)
    tools = _own_tools(definition, registry())  # which loads the graphs too
    graph = _graph(run, definition, history, own)
    last_step = graph.step if graph else rows[-1][1] if rows else -1
    calls = [c for c in ledger.load(run.id) if c.step == last_step] if began else []
    work = Work(
        claim=claim,
        seen=Seen(run.version, run.last_seq, run.cancel_requested_at is not None, False),
        run=run,
        definition=definition,
        engine=COMPENSATE if run.undoes_id else engine_of(definition),
        tools=tools,
        rules=rules_of(run),
        limits=limits_of(run),
        history=history,
        position=len(rows),
        own_messages=len(own),
        rolling=verified.rolling,
        calls=with_children(calls, tools),
        next_step=run.next_step,
        steps=run.steps,
        usage=Usage(run.input_tokens, run.output_tokens, run.cost_microusd),
        workspace=place,
        model_failures=run.model_failures,
        attempt=_attempt(run),
        graph=graph,
        cut=verified.state.get("cut", 0),
        weight=sum(len(body) for _, _, body in rows),
    )
    if graph is None and work.view.answered:
        work.output = ports.redactor().text(wire.text_of(history[-1]))  # type: ignore[arg-type]
    return work


def sound_checkpoint(run: Run) -> str | None:
    """The latest checkpoint of the run that still verifies, for a person to fork from; None if none does."""
    own: list[str] = []
    with suppress(SealBroken):  # those before the first that does not open
        own.extend(message.body for message in _rows(run) if message.run_id == run.id)
    found = store.newest_sound(run.id, own)
    return str(found.id) if found else None


def _messages(run: Run) -> list[tuple[uuid.UUID, int, str]]:
    """The thread's messages in order: of which run, of which of its steps, and the text."""
    return [(message.run_id, message.step, message.body) for message in _rows(run)]


def _rows(run: Run) -> list[Message]:
    of_thread = "WHERE thread_id = %(thread)s ORDER BY position"
    return instances(Message, of_thread, thread=run.thread_id)


def _checkpoint(run: Run, rows: Sequence[tuple[uuid.UUID, int, str]]) -> Checkpoint | None:
    """The newest one. A run whose model has spoken has one: its absence is no new beginning."""
    found = store.newest(run.id)
    if found is None and any(run_id == run.id and step >= 0 for run_id, step, _ in rows):
        raise StateUnusable(
            "The run has taken steps, and none of its checkpoints is there any more. "
            "Nothing was continued."
        )
    return found


def _workspace(run: Run, source: str | None, began: bool) -> Path | None:
    """The run's folder. One that is gone is not made anew: what the run did in it would silently be undone."""
    if not source:
        return None
    if run.undoes_id:  # what was done in a workspace is taken back there
        there = workspace.path_of(run.undoes_id)
        return there if there.is_dir() else None
    if began and not workspace.path_of(run.id).is_dir():
        raise StateUnusable(
            "The run's workspace is gone, with what the run did in it. Nothing was continued."
        )
    return workspace.prepare(run.id, source)


def _history(rows: Sequence[tuple[uuid.UUID, int, str]]) -> list[ModelMessage]:
    try:
        return [wire.load(json.loads(body)) for _, _, body in rows]
    except ValueError as error:
        raise StateUnusable("A message of the conversation cannot be read any more.") from error


def _graph(
    run: Run, definition: dict[str, Any], history: Sequence[ModelMessage], own: Sequence[str]
) -> GraphState | None:
    """The state as a graph's nodes have left it, each row of it verified; None for other engines."""
    if definition.get("engine") != "graph" or run.undoes_id:
        return None
    start = GraphState(values={"input": wire.prompt_of(history)})
    if not run.next_step:
        return start
    rows = instances(Checkpoint, _OF_GRAPH, run=run.id)
    if not rows and Step.objects.filter(run_id=run.id, kind="node", status="succeeded").exists():
        raise StateUnusable("The graph has run nodes, and its state is not there any more.")
    return graph_state.fold((snapshot.verify(row, own).state for row in rows), start)


# The newest whole state, and what nodes have set since.
_OF_GRAPH = """
WHERE run_id = %(run)s AND reason IN ('node', 'state') AND step >= COALESCE((
    SELECT max(step) FROM checkpoint WHERE run_id = %(run)s AND reason = 'state'), 0)
ORDER BY step
"""


def _attempt(run: Run) -> Attempt:
    """How the next model request is made: as the last one that failed left it."""
    definition = run.agent_version.definition
    if definition.get("on_model_failure") == "ask":
        found = escalation.answered(run, definition.get("fallback_models", []))
        if found is not None:
            return found
    if not run.model_failures:
        return Attempt()
    failed = Step.objects.filter(run_id=run.id, kind="model", status="failed").order_by("-index")
    detail = failed.values_list("detail", flat=True).first()
    return Attempt.of((detail or {}).get("next"))


def _own_tools(definition: dict[str, Any], tools: Any) -> dict[str, Tool]:
    """The agent's tools that this process knows; one that is gone is told to the model when it is called."""
    own = {name: tools[name] for name in definition.get("tools", []) if name in tools}
    return {name: _naming_agents(tool, definition) for name, tool in own.items()}


def _naming_agents(tool: Tool, definition: dict[str, Any]) -> Tool:
    """A tool that delegates, telling the model to whom it may; what an approval is bound to stays the same."""
    if not tool.delegates:
        return tool
    names = ", ".join(definition.get("agents", []))
    description = f"{tool.spec.description} The agents are: {names}."
    return replace(tool, spec=replace(tool.spec, description=description))


def rules_of(run: Run) -> list[Rule]:
    """The permissions of the run's agent as they are now."""
    return [
        Rule(str(row.id), row.tool, Verdict(row.verdict), row.constraints or {})
        for row in instances(ToolPermission, "WHERE agent_id = %(agent)s", agent=run.agent_id)
    ]


def limits_of(run: Run) -> RunLimits:
    """What the run may spend."""
    return RunLimits(run.max_steps, run.max_tokens, run.max_cost_microusd / 1e6, run.deadline_s)

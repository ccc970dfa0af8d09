"""One node of a graph: run it on the state, authorise what it asks for, and save it all in one commit."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import structlog
from pydantic_ai.messages import ModelMessage

from runtime_core import ports
from runtime_core.checkpoints import snapshot
from runtime_core.checkpoints.graph_state import GraphState, Saved, plain
from runtime_core.checkpoints.upcast import SCHEMA_VERSION
from runtime_core.engines.nodes import Answer, Ask, Call, Finish, Next
from runtime_core.engines.port import RunNode
from runtime_core.errors import InvalidInput, StateNotPlain
from runtime_core.gateway import messages as wire
from runtime_core.ids import new_id
from runtime_core.loop import budget, spans
from runtime_core.loop.continuation import Continuation, ended_audit, follow
from runtime_core.loop.control import Hold
from runtime_core.loop.ending import end
from runtime_core.loop.model_step import result_event, step_row
from runtime_core.loop.outcome import Done, Fail, Go, Outcome, Stop
from runtime_core.loop.work import OpenStep, Work, checkpoint_event
from runtime_core.sanitize import clip, storable_text
from runtime_core.states import RunStatus
from runtime_core.tools import gate, ledger
from runtime_core.tools.ledger import CallRecord
from runtime_core.transitions import NewEvent, NodeCommit, StepCommit
from runtime_core.values import Json, ProposedCall

log = structlog.get_logger(__name__)

ASK_TOOL = "ask_human"
_ERROR_BYTES = 2_000


def take(work: Work, hold: Hold, move: RunNode) -> Outcome:
    """Run one node and save what it answered; a node that was not saved runs again."""
    spent = budget.spent(work.limits, work.steps, work.usage)
    if spent:
        return Stop("budget", spent)
    told = [] if work.step is not None else [work.open_step("node", move.name)]
    step, graph = work.step, work.graph
    assert step is not None and graph is not None  # noqa: S101 - opened right before
    results = _results(graph, work.calls)
    try:
        answer = _answer(move, graph.shown(results))
        saved = _saved(graph, step.index, answer, results)
        wanted = _wanted(work, step.index, answer)
    except _NodeFailed as failed:
        return _fail(work, step, told, failed)
    if isinstance(answer, Next):
        return _go_on(work, hold, step, saved, told)
    if isinstance(answer, Finish):
        return _finish(work, step, saved, told, answer)
    return _call(work, hold, step, saved, told, wanted)


class _NodeFailed(Exception):
    """What a node did wrong, in words for a person."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


def _answer(move: RunNode, state: dict[str, Json]) -> Answer:
    try:
        answer: object = move.run(state)
    except Exception as error:
        log.warning("node.raised", node=move.name, error=type(error).__name__)
        text = f"The node {move.name} raised {type(error).__name__}: {error}"
        raise _NodeFailed("node_failed", text) from error
    if isinstance(answer, Next | Call | Ask | Finish):
        return answer
    text = f"The node {move.name} returned a {type(answer).__name__}; it must be one of Next, Call, Ask, Finish."
    raise _NodeFailed("node_failed", text)


def _saved(graph: GraphState, step: int, answer: Answer, results: Mapping[str, Json]) -> Saved:
    try:
        delta = {**results, **plain(answer.set, "state")}
        match answer:
            case Next(to=to):
                return graph.after(step, to, "", delta)
            case Call(then=then, into=into) | Ask(then=then, into=into):
                return graph.after(step, then, into, delta)
            case Finish():
                return graph.after(step, "", "", delta)
    except (InvalidInput, StateNotPlain) as error:
        raise _NodeFailed("node_failed", error.message) from error


def _results(graph: GraphState, calls: list[CallRecord]) -> dict[str, Json]:
    """What became of the call that the node before asked for, under the key that it named."""
    if not calls or not graph.into:
        return {}
    call = calls[0]
    return {graph.into: {"status": call.status.value, "value": _value(call.result_text or "")}}


def _value(text: str) -> Json:
    """A tool's result: objects and lists are read, any other text is the text."""
    if not text.startswith(("{", "[")):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _go_on(work: Work, hold: Hold, step: OpenStep, saved: Saved, told: list[NewEvent]) -> Outcome:
    """The common case by the leanest statement: nothing but the state and the next node."""
    work.step = None
    if hold.goes_on:
        told.append(work.open_step("node", saved.state.node))
    step_id = new_id()
    work.commit_node(
        NodeCommit(
            step_id=step_id,
            index=step.index,
            attempt=work.run.attempt,
            name=step.name,
            started_at=step.started_at,
            next_step=work.next_step,
            checkpoint_id=new_id(),
            reason=saved.reason,
            schema_version=SCHEMA_VERSION,
            messages=work.own_messages,
            state=saved.text,
            digest=snapshot.seal_text(work.rolling, saved.text),
            events=told,
        )
    )
    work.graph = saved.state
    work.calls = []
    spans.node(work, step, "ok")
    return Go()


def _finish(
    work: Work, step: OpenStep, saved: Saved, told: list[NewEvent], answer: Finish
) -> Outcome:
    output = ports.redactor().text(storable_text(str(answer.output)))
    text = NewEvent("text_delta", {"step": step.index, "offset": 0, "text": output}, step.index)
    after = Continuation(Done(output), [], audits=[ended_audit(work.run, RunStatus.COMPLETED)])
    said = [wire.spoken(str(answer.output), work.run.agent.name)]
    return _save(work, step, saved, [*told, text], after, said)


def _call(
    work: Work,
    hold: Hold,
    step: OpenStep,
    saved: Saved,
    told: list[NewEvent],
    wanted: list[ProposedCall],
) -> Outcome:
    calls = gate.authorise(
        wanted, run_id=work.run_id, step=step.index, tools=work.tools, rules=work.rules
    )
    told = [*told, *(result_event(c, step.index) for c in calls if c.status.ended)]
    # What follows is decided from where the graph will be.
    work.graph = saved.state
    after = follow(work, calls, "", begin=hold.goes_on)
    return _save(work, step, saved, told, after, [])


def _save(
    work: Work,
    step: OpenStep,
    saved: Saved,
    told: list[NewEvent],
    after: Continuation,
    said: Sequence[ModelMessage],
) -> Outcome:
    messages, bodies = work.say(step.index, said)
    point = snapshot.row(
        step=step.index,
        reason=saved.reason,
        messages=work.own_messages + len(messages),
        rolling=snapshot.extend(work.rolling, bodies),
        state=saved.stored,
    )
    told = [*told, checkpoint_event(point, step.index)]
    work.commit(
        StepCommit(
            to=after.to,
            cause=after.cause,
            next_step=work.next_step,
            steps=[step_row(work, step, "succeeded", {"calls": len(after.calls)})],
            messages=messages,
            new_calls=[ledger.new_row(call) for call in after.calls],
            interrupts=after.interrupts,
            checkpoints=[point],
            events=[*told, *after.events],
            audits=after.audits,
            spans=after.spans,
            available_in=after.available_in,
            output=after.output,
            error=after.error,
        )
    )
    work.graph = saved.state
    work.calls = after.calls
    if work.step is step:
        work.step = None
    spans.node(work, step, "ok")
    return after.outcome


def _wanted(work: Work, step: int, answer: Answer) -> list[ProposedCall]:
    """The call that a node asks for, in the form in which a model would have asked."""
    args: Json
    match answer:
        case Call(tool=tool, args=args):
            pass
        case Ask(question=question, choices=choices):
            tool = ASK_TOOL
            args = {"question": question} | ({"choices": list(choices)} if choices else {})
        case _:
            return []
    try:
        text = json.dumps(plain(args, "args"), ensure_ascii=False)
    except (InvalidInput, StateNotPlain) as error:
        raise _NodeFailed("node_failed", error.message) from error
    return [ProposedCall(f"call_{work.run_id.hex[-12:]}_{step}", tool, text)]


def _fail(work: Work, step: OpenStep, told: list[NewEvent], failed: _NodeFailed) -> Outcome:
    text = clip(storable_text(str(failed)), _ERROR_BYTES)[0]
    message = ports.redactor().text(text)
    outcome = Fail(failed.code, message, retryable=True)
    row = step_row(work, step, "failed", {"error": failed.code, "message": message})
    end(work, outcome, steps=[row], events=told)
    spans.node(work, step, "error", {"error": failed.code})
    return outcome

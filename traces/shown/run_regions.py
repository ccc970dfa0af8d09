"""The regions of the run page that change while it is looked at; each can be rendered alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.template.loader import render_to_string

from runtime_core import clock, queries
from runtime_core.access import Can
from runtime_core.limits import limits
from runtime_core.models import Event, Interrupt, Run, ToolCall
from runtime_core.scheduling import queue
from runtime_core.states import CallStatus, InterruptStatus, RunStatus
from runtime_core.templatetags.formats import format_cost, format_duration
from runtime_core.values import Effect
from traces.shown.timeline import timeline_of

ASKS_SHOWN = 20
CHILDREN_SHOWN = 50
DELTAS_JOINED = 5_000

_PAUSABLE = (RunStatus.PENDING, RunStatus.RUNNING, RunStatus.WAITING)
_RETRYABLE = (RunStatus.FAILED, RunStatus.TIMED_OUT)


def header(run: Run, rights: frozenset[Can]) -> dict[str, Any]:
    """Title, status and the facts under them; why it failed, if it did."""
    return {
        "run": run,
        "error": run.error if run.state.ended or run.error else None,
        "place": queue.places([run]).get(run.id),
    }


def meters(run: Run, rights: frozenset[Can]) -> dict[str, Any]:
    """What the run has used of what it may use."""
    used = _seconds_used(run)
    cost, max_cost = run.cost_microusd / 1e6, run.max_cost_microusd / 1e6
    return {
        "run": run,
        "tokens": run.input_tokens + run.output_tokens,
        "cost": cost,
        "max_cost": max_cost,
        "cost_text": f"{format_cost(cost)} / {format_cost(max_cost)}",
        "time_used": used,
        "time_text": f"{format_duration(used)} / {format_duration(run.deadline_s)}",
    }


def _seconds_used(run: Run) -> float:
    """Of the deadline: what was spent before people does not count."""
    until = run.ended_at or run.stopped_at or clock.now()
    if run.deadline_at is None:
        return 0.0
    return max(run.deadline_s - (run.deadline_at - until).total_seconds(), 0.0)


def timeline(run: Run, rights: frozenset[Can]) -> dict[str, Any]:
    """The bars."""
    return {"run": run, "timeline": timeline_of(run)}


def actions(run: Run, rights: frozenset[Can]) -> dict[str, Any]:
    """The buttons that this person may press now."""
    may = Can.OPERATE in rights
    live = not run.state.ended and not run.cancelling
    return {
        "run": run,
        "may_operate": may,
        "may_see_personal": Can.SEE_PERSONAL in rights,
        "can_cancel": may and live,
        "can_pause": may and live and run.state in _PAUSABLE and not run.pause_requested_at,
        "can_resume": may and live and run.state is RunStatus.PAUSED,
        "can_fork": may and live and bool((run.error or {}).get("sound_checkpoint")),
        "can_delete": Can.MANAGE in rights and run.state.ended and not run.is_child,
        "can_force": may and _does_not_stop(run),
        "can_retry": may and run.state in _RETRYABLE and run.compensation != "begun",
    }


def _does_not_stop(run: Run) -> bool:
    """True if it was asked to stop so long ago that somebody may want to end it by force."""
    if not run.cancelling or run.cancel_requested_at is None:
        return False
    asked_for = (clock.now() - run.cancel_requested_at).total_seconds()
    return asked_for >= limits().force_stop_after_seconds


def children(run: Run, rights: frozenset[Can]) -> dict[str, Any]:
    """The runs that work for this one."""
    found = queries.children([run.id])[run.id]
    return {"run": run, "children": found[:CHILDREN_SHOWN]}


def asks(run: Run, rights: frozenset[Can]) -> dict[str, Any]:
    """What waits for a person."""
    rows = Interrupt.objects.filter(run=run, status=InterruptStatus.OPEN).select_related(
        "tool_call"
    )
    return {"run": run, "asks": list(rows[:ASKS_SHOWN]), "may_decide": Can.DECIDE in rights}


def answer(run: Run, rights: frozenset[Can]) -> dict[str, Any]:
    """The answer: the run's own once it has one, else what the model has said so far."""
    if run.output is not None:
        return {"run": run, "answer": run.output, "is_final": run.state.ended, "step": None}
    text, step, offset = _said_so_far(run)
    return {"run": run, "answer": text, "is_final": False, "step": step, "offset": offset}


def _said_so_far(run: Run) -> tuple[str, int | None, int]:
    deltas = Event.objects.filter(run=run, type="text_delta")
    last = deltas.order_by("-seq").values_list("data", flat=True).first()
    if last is None:
        return "", None, 0
    step = last.get("step")
    rows = deltas.filter(step=step).order_by("seq").values_list("data", flat=True)
    text = "".join(str(row.get("text", "")) for row in rows[:DELTAS_JOINED])
    return text, step, int(last.get("offset", 0)) + len(str(last.get("text", "")))


def leaves(run: Run, rights: frozenset[Can]) -> dict[str, Any]:
    """What a cancel would stop, and which effects stay: for its dialog."""
    calls = ToolCall.objects.filter(run=run)
    lasting = calls.filter(status=CallStatus.SUCCEEDED).exclude(effect=Effect.READ)
    undoable = lasting.filter(effect=Effect.COMPENSATABLE)
    found = {
        "executing": list(calls.filter(status=CallStatus.EXECUTING).values_list("tool", flat=True)),
        "open_asks": Interrupt.objects.filter(run=run, status=InterruptStatus.OPEN).count(),
        "children": [child.agent.name for child in run.live_children.select_related("agent")],
        "done": list(lasting.values_list("tool", flat=True)[:10]),
        "undoable": list(undoable.values_list("tool", flat=True)[:10]),
    }
    return {"run": run, "leaves": found}


def effects(run: Run, rights: frozenset[Can]) -> dict[str, Any]:
    """What an ended run did to the world outside, and what of it can be taken back."""
    found = queries.effects(run) if run.state.ended and run.undoes_id is None else None
    able = found is not None and bool(found.can_undo)
    return {"run": run, "effects": found, "can_compensate": able and Can.OPERATE in rights}


# By the id of the element that each one replaces.
REGIONS: dict[str, Callable[[Run, frozenset[Can]], dict[str, Any]]] = {
    "run-header": header,
    "actions": actions,
    "asks": asks,
    "children": children,
    "meters": meters,
    "timeline": timeline,
    "answer": answer,
    "leaves": leaves,
    "effects": effects,
}


def render_region(name: str, run: Run, rights: frozenset[Can]) -> str:
    """The HTML of one region."""
    return render_to_string(
        f"traces/run/_{name.replace('-', '_')}.html", REGIONS[name](run, rights)
    )


def page_context(run: Run, rights: frozenset[Can]) -> dict[str, Any]:
    """Everything that the regions need, for the page that includes them all."""
    context: dict[str, Any] = {}
    for fill in REGIONS.values():
        context |= fill(run, rights)
    return context

"""The run page's timeline: the run, its waits, steps and tool calls as bars on one scale."""

from __future__ import annotations

import datetime as dt
import uuid
from dataclasses import dataclass

from runtime_core import clock
from runtime_core.models import Run, Step, ToolCall
from runtime_core.states import CallStatus, RunStatus
from runtime_core.templatetags.status_words import RUN, TOOL_CALL
from traces.shown.timescale import Timescale
from traces.shown.waits import Wait, Waits, waits_of

STEPS_SHOWN = 100
_STEP_TONES = {"succeeded": "info", "failed": "bad", "cancelled": "neutral"}
_WAIT_TONES = {"queue": "neutral", "paused": "pause", "person": "wait"}
_WAIT_ICONS = {"queue": "hourglass", "paused": "pause", "person": "clock"}


@dataclass(slots=True)
class Bar:
    """One row: an icon and a name, a bar, how long it took. `kinds` are what the filters go by."""

    name: str
    icon: str
    tone: str
    kinds: str
    depth: int
    started_at: dt.datetime
    ended_at: dt.datetime | None
    x: float = 0.0
    width: float = 0.0
    interrupt_id: uuid.UUID | None = None

    @property
    def is_open(self) -> bool:
        """True while it goes on."""
        return self.ended_at is None

    @property
    def took(self) -> dt.timedelta:
        """How long it took, or has taken so far."""
        return (self.ended_at or clock.now()) - self.started_at


@dataclass(frozen=True, slots=True)
class Timeline:
    """The rows; how many steps came before them; whether waits are drawn shorter than they were."""

    bars: list[Bar]
    left_out: int
    is_shortened: bool


def timeline_of(run: Run) -> Timeline:
    """The newest hundred steps of the run, with what surrounds them."""
    steps = list(Step.objects.filter(run=run).order_by("-index")[:STEPS_SHOWN])[::-1]
    left_out = max(run.steps - len(steps), 0) if len(steps) == STEPS_SHOWN else 0
    first = steps[0].started_at if left_out else run.created_at
    waits = waits_of(run)
    rows = [_bar_of_run(run)]
    rows += sorted(_inside(run, steps, waits, first), key=lambda bar: bar.started_at)
    times = [(max(bar.started_at, first), bar.ended_at) for bar in rows]
    scale = Timescale(times, waits.idle, clock.now())
    for bar in rows:
        bar.x, bar.width = scale.place(max(bar.started_at, first), bar.ended_at)
    return Timeline(rows, left_out, scale.is_shortened)


def _inside(run: Run, steps: list[Step], waits: Waits, first: dt.datetime) -> list[Bar]:
    bars = [_bar_of_step(step) for step in steps if step.kind != "tool"]
    bars += [_bar_of_wait(w) for w in waits.shown if w.ended_at is None or w.ended_at > first]
    calls = ToolCall.objects.filter(run=run, started_at__gte=first)
    bars += [_bar_of_call(call) for call in calls.defer("args_text", "result_text")[:STEPS_SHOWN]]
    if run.status == RunStatus.RUNNING and not any(bar.is_open for bar in bars):
        since = max([bar.ended_at for bar in bars if bar.ended_at], default=run.created_at)
        bars.append(Bar("at work", "dot", "info", "step", 1, since, None))
    return bars


def _bar_of_run(run: Run) -> Bar:
    look = RUN[run.status]
    kinds = "run error" if run.status in ("failed", "timed_out") else "run"
    return Bar("Run", look.icon, look.tone, kinds, 0, run.created_at, run.ended_at)


def _bar_of_step(step: Step) -> Bar:
    failed = step.status == "failed"
    return Bar(
        name=f"step {step.index + 1} · {'model' if step.kind == 'model' else step.name}",
        icon="cross" if failed else "model" if step.kind == "model" else "step",
        tone=_STEP_TONES.get(step.status, "info"),
        kinds="step error" if failed else "step",
        depth=1,
        started_at=step.started_at,
        ended_at=step.ended_at,
    )


def _bar_of_call(call: ToolCall) -> Bar:
    look = TOOL_CALL[call.status]
    failed = call.status in (CallStatus.FAILED, CallStatus.UNKNOWN)
    assert call.started_at is not None  # noqa: S101 (filtered)
    return Bar(
        name=call.tool,
        icon=look.icon,
        tone=look.tone,
        kinds="tool error" if failed else "tool",
        depth=2,
        started_at=call.started_at,
        ended_at=call.ended_at,
    )


def _bar_of_wait(wait: Wait) -> Bar:
    return Bar(
        name=wait.name,
        icon=_WAIT_ICONS[wait.kind],
        tone=_WAIT_TONES[wait.kind],
        kinds="queue" if wait.kind == "queue" else "wait",
        depth=1,
        started_at=wait.started_at,
        ended_at=wait.ended_at,
        interrupt_id=wait.interrupt_id,
    )

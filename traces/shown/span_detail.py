"""One span whole: its facts in words, what went in and came out, who let it happen, and where it hangs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model

from runtime_core import tracing
from runtime_core.models import Interrupt, Run, ToolCall
from traces.gate import redactor
from traces.models import SpanPayload, SpanRow
from traces.shown.span_tree import Node
from traces.shown.trace_page import Trace, parent_of
from traces.shown.trace_rows import TraceRow

SHORT_CHARACTERS = 60
_CALLS = ("tool", "mcp", "subagent", "compensate")
_WORDS = {
    "why": "Permission", "first_token_s": "First token after", "finish_reason": "Finish reason",
    "calls": "Asked for", "decided_by": "Decided by", "outcome": "Outcome", "exit_code": "Exit code",
    "plain_schemas": "Plain schemas", "fallback": "Fallback", "risk": "Risk", "effect": "Effect",
    "attempt": "Attempt", "model": "Model", "provider": "Provider", "error": "Error", "agent": "Agent",
    "version": "Version", "kind": "Asked as", "ended": "Ended", "messages": "Messages", "steps": "Steps before it",
}  # fmt: skip
# Said in better places of the panel.
_SAID = {"run"}


@dataclass(frozen=True, slots=True)
class Part:
    """What went into or came out of a span: short values by name, long ones as blocks of text."""

    name: str
    short: list[tuple[str, str]]
    long: list[tuple[str, str]]
    truncated: bool


def detail(trace: Trace, node: Node) -> dict[str, Any]:
    """What the panel and the page of a span show; payloads are read only here."""
    row = trace.row(node)
    span = SpanRow.objects.get(id=node.span.id)
    parts = SpanPayload.objects.filter(span=span).order_by("part")
    return {
        "row": row,
        "span": span,
        "facts": _facts(span),
        "parts": [_part(part, redactor().reader(span.run_id)) for part in parts],
        "redactions": sorted(span.redactions.items()),
        "parent": parent_of(trace, node.span),
        "asked": _asked(trace.run, span),
        "child": _child(trace.run, span),
        "agent": trace.run.agent_version,
        "json": json.dumps(as_json(span, row), indent=2, ensure_ascii=False),
    }


def page_as_json(rows: Sequence[TraceRow]) -> str:
    """The spans of these rows as a list, without what went in and out."""
    whole = SpanRow.objects.in_bulk([row.span.id for row in rows if row.span])
    data = [as_json(whole[row.span.id], row) for row in rows if row.span and row.span.id in whole]
    return json.dumps(data, indent=2, ensure_ascii=False)


def as_json(span: SpanRow, row: TraceRow) -> dict[str, Any]:
    """The span as data."""
    return {
        "id": str(span.id),
        "parent_id": str(span.parent_id) if span.parent_id else None,
        "kind": span.kind,
        "name": span.name,
        "status": row.status,
        "epoch": span.epoch,
        "step": span.step,
        "started_at": span.started_at.isoformat(),
        "ended_at": row.ended_at.isoformat() if row.ended_at else None,
        "usage": {
            "input_tokens": span.input_tokens,
            "output_tokens": span.output_tokens,
            "cost_microusd": span.cost_microusd,
        },
        "attrs": span.attrs,
        "redactions": span.redactions,
    }


def _facts(span: SpanRow) -> list[tuple[str, str]]:
    kept = {k: v for k, v in span.attrs.items() if v not in (None, "", []) and k not in _SAID}
    return [(_WORDS.get(key, key), _in_words(key, value)) for key, value in kept.items()]


def _in_words(key: str, value: Any) -> str:
    if key == "decided_by":
        person = get_user_model().objects.filter(pk=value).first()
        return person.get_username() if person else f"user {value}"
    if key == "first_token_s" and isinstance(value, int | float):
        return f"{value:.2f} s"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)


def _asked(run: Run, span: SpanRow) -> Interrupt | None:
    """The request by which a person let a call run, or did not."""
    if span.kind == "interrupt":
        return Interrupt.objects.filter(run=run, id=span.id).first()
    if span.kind == "decision":
        return Interrupt.objects.filter(run=run, id=span.parent_id).first()
    if span.kind not in _CALLS:
        return None
    call = ToolCall.objects.filter(run=run, id=tracing.of_call(span.id, span.epoch)).first()
    return (
        Interrupt.objects.filter(tool_call=call).order_by("-created_at").first() if call else None
    )


def _child(run: Run, span: SpanRow) -> Run | None:
    """The run to which this one handed the call."""
    if span.kind != "subagent":
        return None
    return Run.objects.filter(parent=run, parent_call=tracing.of_call(span.id, span.epoch)).first()


def _part(payload: SpanPayload, shown: Callable[[Any], Any] | None) -> Part:
    try:
        value = json.loads(payload.body)
    except ValueError:
        value = payload.body  # it was cut, so it is no JSON any more
    value = shown(value) if shown else value
    fields = value.items() if isinstance(value, dict) else [("", value)]
    texts = [(str(name), _text(item)) for name, item in fields]
    short = [(name, text) for name, text in texts if name and _is_short(text)]
    long = [(name, text) for name, text in texts if not (name and _is_short(text))]
    return Part(payload.part, short, long, payload.truncated)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def _is_short(text: str) -> bool:
    return len(text) <= SHORT_CHARACTERS and "\n" not in text

"""The names that the GenAI semantic conventions give to what a span holds; they still change, ours do not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from opentelemetry.trace import SpanKind

from runtime_core import tracing
from traces.models import SpanRow

VERSION = "genai-1.44"
SCHEMA_URL = "https://opentelemetry.io/schemas/1.44.0"

OF_TOOLS = ("tool", "mcp", "subagent", "compensate")
_OPERATIONS = {"llm": "chat", "run": "invoke_agent", **dict.fromkeys(OF_TOOLS, "execute_tool")}
# By kind of span: which of our attributes has a name there.
_NAMES: dict[str, dict[str, str]] = {
    "llm": {
        "model": "gen_ai.response.model",
        "provider": "gen_ai.provider.name",
        "first_token_s": "gen_ai.response.time_to_first_chunk",
    },
    "run": {"agent": "gen_ai.agent.name"},
}
# Out of closed sets, or identifiers: none holds what somebody said. The rest is content.
_PLAIN = frozenset(
    {
        "attempt",
        "agent",
        "calls",
        "decided_by",
        "effect",
        "ended",
        "exit_code",
        "kind",
        "messages",
        "outcome",
        "risk",
        "run",
        "steps",
        "version",
    }
)
_CONTENT = {"input": "gen_ai.tool.call.arguments", "output": "gen_ai.tool.call.result"}


def name(row: SpanRow, attrs: Mapping[str, Any]) -> str:
    """What the conventions call such a span; a run's own title is content and stays here."""
    operation = _OPERATIONS.get(row.kind)
    if operation is None:
        return str(row.name)
    subject = attrs.get({"llm": "model", "run": "agent"}.get(row.kind, ""))
    if row.kind in OF_TOOLS:
        subject = row.name
    return f"{operation} {subject}" if subject else operation


def kind(row: SpanRow) -> SpanKind:
    """A model is asked over the network; everything else happens here."""
    return SpanKind.CLIENT if row.kind == "llm" else SpanKind.INTERNAL


def attributes(row: SpanRow, attrs: Mapping[str, Any], *, content: bool) -> dict[str, Any]:
    """The span's attributes, under their standard names where there are any."""
    made = {
        "interlock.semconv": VERSION,
        "interlock.run_id": str(row.run_id),
        "interlock.span.id": str(row.id),
        "interlock.span.kind": row.kind,
        "interlock.span.status": row.status,
        **dict(_own(row)),
    }
    names = _NAMES.get(row.kind, {})
    for key, value in attrs.items():
        if value is not None and (key in names or content or key in _PLAIN):
            made[names.get(key, f"interlock.attrs.{key}")] = plain(value)
    if row.status in ("error", "abandoned"):
        made["error.type"] = plain(attrs.get("error") or row.status)
    return made


def _own(row: SpanRow) -> Iterator[tuple[str, Any]]:
    if row.kind in _OPERATIONS:
        yield "gen_ai.operation.name", _OPERATIONS[row.kind]
    if row.step is not None:
        yield "interlock.step", row.step
    if row.kind in OF_TOOLS:
        yield "gen_ai.tool.name", row.name
        yield "gen_ai.tool.type", "function"
        yield "gen_ai.tool.call.id", str(tracing.of_call(row.id, row.epoch))
    # Of models alone: whoever adds up a trace must not count a token twice.
    if row.kind == "llm":
        yield "gen_ai.usage.input_tokens", row.input_tokens
        yield "gen_ai.usage.output_tokens", row.output_tokens
        yield "interlock.cost_microusd", row.cost_microusd
        if row.attrs.get("finish_reason"):
            yield "gen_ai.response.finish_reasons", [str(row.attrs["finish_reason"])]


def payload(row: SpanRow, part: str, value: Any) -> tuple[str, str]:
    """An input or output; ours of models is not in the form that the standard names promise."""
    key = _CONTENT[part] if row.kind in OF_TOOLS else f"interlock.{part}"
    return key, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def plain(value: Any) -> Any:
    """The value as attributes may be: a number, a text, texts in a row; anything else as JSON text."""
    if isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return value
    return json.dumps(value, ensure_ascii=False)

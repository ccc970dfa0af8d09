"""A run's conversation with personal data in it, for those who may see that: read from under seal, and audited."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from runtime_core import ports
from runtime_core.access import Can
from runtime_core.callers import Caller
from runtime_core.errors import InvalidInput, NotAllowed
from runtime_core.models import Message, Run, ToolCall
from runtime_core.sanitize import clip, storable_text
from runtime_core.scope import Scope
from runtime_core.transactions import one_commit
from runtime_core.values import Audit
from traces.gate import redactor
from traces.policies.redactor import Gate

MESSAGES = 500
TEXT_BYTES = 20_000
REASON_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that was said, called or answered."""

    who: str
    text: str


def reveal(who: Caller, run: Run, reason: str) -> list[Line]:
    """What was said in the run, secrets taken out and personal data kept; the audit has who saw it, and why.

    NotAllowed without the right; InvalidInput without a reason.
    """
    who.require(run.project_id, Can.SEE_PERSONAL)
    if who.via == "machine":
        raise NotAllowed("Personal data is shown to people, not to machines.")
    reason = storable_text(reason.strip())[:REASON_CHARACTERS]
    if not reason:
        raise InvalidInput("reason: say what you need it for; the audit keeps it.", field="reason")
    with one_commit("personal"):
        seen = Audit(
            action="personal.viewed",
            actor=who.actor,
            object_type="run",
            object_id=str(run.id),
            project_id=run.project_id,
            run_id=run.id,
            data={"reason": reason},
        )
        ports.audit().record([seen])
    return _lines(run)


def _lines(run: Run) -> list[Line]:
    gate = redactor().on("page", Scope(run.project_id, run.agent_id)).personal()
    tools = dict(ToolCall.objects.filter(run=run).values_list("call_id", "tool"))
    rows = Message.objects.filter(run=run).order_by("position")[:MESSAGES]
    return [line for row in rows for line in _said(json.loads(row.body), gate, tools)]


def _said(message: Any, gate: Gate, tools: dict[str, str]) -> list[Line]:
    if "ascii" in message:
        message = json.loads(message["ascii"])
    return [_line(part, gate, tools) for part in message.get("parts", [])]


def _line(part: dict[str, Any], gate: Gate, tools: dict[str, str]) -> Line:
    kind = part.get("part_kind", "")
    if kind in ("tool-call", "tool-return"):
        tool = tools.get(str(part.get("tool_call_id")), str(part.get("tool_name", "")))
        value = _value(part.get("args" if kind == "tool-call" else "content"))
        verb = "calls" if kind == "tool-call" else "answers"
        return Line(gate.text(f"{tool} {verb}"), _text(gate.of_tool(tool, value).value))
    who = {"user-prompt": "person", "text": "model"}.get(kind, kind)
    return Line(who, _text(gate.redact(part.get("content")).value))


def _value(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    return clip(text, TEXT_BYTES)[0]

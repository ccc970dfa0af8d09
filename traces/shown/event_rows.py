"""One line of the event stream: what an event says in words. Pure; the templates escape."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from runtime_core.sanitize import canonical
from runtime_core.templatetags.status_words import RUN, TOOL_CALL

SAID_CHARACTERS = 180
VALUE_CHARACTERS = 90
TEXT_CHARACTERS = 2_000

_CAUSES = {
    "claim": "a worker took it",
    "lease_lost": "its worker was lost",
    "released": "its worker gave it back",
    "backoff": "the model is not ready",
    "children": "other agents work for it",
    "answered": "those who worked for it are done",
    "stopping": "those who work for it must stop first",
    "forced": "somebody stopped it by force",
    "asked": "a person must decide",
    "budget": "a budget is spent",
    "pause": "somebody paused it",
    "resume": "somebody resumed it",
    "retry": "somebody retried it",
    "cancel": "somebody cancelled it",
    "decided": "a person decided",
    "expired": "nobody decided in time",
    "deadline": "its deadline passed",
    "finished": "the agent is done",
    "error": "an error ended it",
    "stopped": "it was stopped",
    "worker_lost": "too many workers were lost",
    "wake": "it is time to go on",
    "unusable": "its stored state does not verify",
}
_RUN_TONES = {"running": "info", "interrupted": "wait", "paused": "pause", "completed": "ok",
              "failed": "bad", "timed_out": "late"}  # fmt: skip
_CALL_TONES = {"succeeded": "ok", "failed": "bad", "rejected": "bad", "unknown": "late"}


class EventLike(Protocol):
    """An event row or a frame."""

    @property
    def seq(self) -> int: ...
    @property
    def type(self) -> str: ...
    @property
    def ts(self) -> dt.datetime: ...
    @property
    def data(self) -> Any: ...


@dataclass(slots=True)
class EventRow:
    """What one line shows: `what` in bold, `said`, `body` folded; `announce` is read aloud."""

    seq: int
    type: str
    ts: dt.datetime
    what: str = ""
    said: str = ""
    tone: str = ""
    body: str = ""
    announce: str = ""
    interrupt_id: str = ""


def row_of(event: EventLike) -> EventRow:
    """The line of one event."""
    row = EventRow(event.seq, event.type, event.ts)
    data = event.data if isinstance(event.data, dict) else {}
    _FILL.get(event.type, _fill_unknown)(row, data)
    return row


def rows_of(events: Iterable[EventLike]) -> list[EventRow]:
    """The lines of many events; text that follows on from text is one line."""
    rows: list[EventRow] = []
    for event in events:
        row = row_of(event)
        if row.type == "text_delta" and rows and rows[-1].type == "text_delta":
            if len(rows[-1].said) < TEXT_CHARACTERS:
                rows[-1].said += str(event.data.get("text", ""))
            rows[-1].seq = row.seq
        else:
            if row.type == "text_delta":
                row.what, row.said = "", str(event.data.get("text", ""))
            rows.append(row)
    return rows


def _status(row: EventRow, data: dict[str, Any]) -> None:
    look = RUN.get(str(data.get("to")))
    row.what = look.words if look else str(data.get("to", ""))
    row.said = _CAUSES.get(str(data.get("cause")), str(data.get("cause", "")))
    row.tone = _RUN_TONES.get(str(data.get("to")), "")
    if data.get("to") in ("interrupted", "paused", "completed", "failed", "cancelled", "timed_out"):
        row.announce = f"Run: {row.what}"


_STEPS = {"model": "asks the model", "node": "runs a node of the graph"}


def _step(row: EventRow, data: dict[str, Any]) -> None:
    index = data.get("index")
    # People count from one.
    row.what = f"Step {index + 1}" if isinstance(index, int) else "Step"
    row.said = _STEPS.get(data.get("kind", ""), "runs a tool")


def _text(row: EventRow, data: dict[str, Any]) -> None:
    row.said = "The model writes…"


def _call(row: EventRow, data: dict[str, Any]) -> None:
    row.what = str(data.get("tool", ""))
    row.tone = "info"
    _say(row, data.get("args"))


def _result(row: EventRow, data: dict[str, Any]) -> None:
    status = str(data.get("status", ""))
    look = TOOL_CALL.get(status)
    words = look.words.lower() if look else status
    row.what = f"{data.get('tool', '')} {words}"
    row.tone = _CALL_TONES.get(status, "")
    _say(row, data.get("result"))
    if data.get("truncated"):
        row.said += " (cut: it was too long to keep)"


def _progress(row: EventRow, data: dict[str, Any]) -> None:
    fraction = data.get("fraction")
    share = f"{fraction:.0%} " if isinstance(fraction, int | float) else ""
    _say(row, f"{share}{data.get('message', '')}")


def _checkpoint(row: EventRow, data: dict[str, Any]) -> None:
    row.said = "Saved: from here it can go on"


def _interrupt(row: EventRow, data: dict[str, Any]) -> None:
    row.what = "A person must decide"
    row.said = str(data.get("tool", ""))
    row.tone = "wait"
    row.interrupt_id = str(data.get("id", ""))
    row.announce = f"Waiting for a person: {row.said}"


def _error(row: EventRow, data: dict[str, Any]) -> None:
    row.what = str(data.get("code", "error"))
    row.tone = "bad"
    _say(row, data.get("message", ""))


def _done(row: EventRow, data: dict[str, Any]) -> None:
    look = RUN.get(str(data.get("status")))
    row.what = "The end"
    row.said = look.sentence if look else ""
    row.tone = _RUN_TONES.get(str(data.get("status")), "")


def _fill_unknown(row: EventRow, data: dict[str, Any]) -> None:
    row.what = row.type
    _say(row, data)


def _say(row: EventRow, value: Any) -> None:
    """Put a value on the line; what does not fit there is folded below it, whole."""
    row.said = _short(value, SAID_CHARACTERS)
    if "…" in row.said or (isinstance(value, str) and row.said != value):
        row.body = (
            value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
        )


def _short(value: Any, limit: int) -> str:
    """A value in one line: `key: value` pairs, long texts by their beginning."""
    match value:
        case None:
            text = ""
        case str():
            text = " ".join(value.split())
        case dict():
            pairs = (f"{key}: {_short(item, VALUE_CHARACTERS)}" for key, item in value.items())
            text = ", ".join(pairs)
        case _:
            text = canonical(value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


_FILL = {
    "run_status": _status,
    "step_start": _step,
    "text_delta": _text,
    "tool_call_start": _call,
    "tool_call_result": _result,
    "progress": _progress,
    "checkpoint": _checkpoint,
    "interrupt": _interrupt,
    "error": _error,
    "done": _done,
}

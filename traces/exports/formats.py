"""How a span looks in each format of an export: pure functions from redacted records to lines."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import uuid
from typing import Any

COLUMNS = (
    "run_id", "span_id", "parent_id", "agent", "kind", "name", "status", "step", "started_at", "ended_at",
    "input_tokens", "output_tokens", "cost_microusd", "attrs", "input", "output",
)  # fmt: skip
Record = dict[str, Any]


def head(format: str) -> str:
    """What stands before the first span."""
    return _csv_line(COLUMNS) if format == "csv" else ""


def line(format: str, record: Record) -> str:
    """One span as one line."""
    if format == "csv":
        return _csv_line([_cell(record[name]) for name in COLUMNS])
    return _json(_otlp(record) if format == "otlp" else _plain(record)) + "\n"


def _plain(record: Record) -> Record:
    return {name: _text(value) for name, value in record.items()}


def _text(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return value.isoformat()
    return str(value) if isinstance(value, uuid.UUID) else value


def _cell(value: Any) -> str:
    value = _text(value)
    if value is None:
        return ""
    text = value if isinstance(value, str) else _json(value)
    # A spreadsheet takes what begins like this for a formula, and runs it.
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def _csv_line(cells: Any) -> str:
    out = io.StringIO()
    csv.writer(out).writerow(cells)
    return out.getvalue()


def _otlp(record: Record) -> Record:
    attributes = {
        "interlock.agent": record["agent"],
        "interlock.kind": record["kind"],
        "gen_ai.usage.input_tokens": record["input_tokens"],
        "gen_ai.usage.output_tokens": record["output_tokens"],
        "interlock.cost_microusd": record["cost_microusd"],
        **{f"interlock.{name}": value for name, value in record["attrs"].items()},
        "interlock.input": record["input"],
        "interlock.output": record["output"],
    }
    span = {
        "traceId": record["run_id"].hex,
        "spanId": _span_id(record["span_id"]),
        "name": record["name"],
        "kind": 3 if record["kind"] == "llm" else 1,
        "startTimeUnixNano": _nanoseconds(record["started_at"]),
        "attributes": [_attribute(name, value) for name, value in attributes.items() if value is not None],
        "status": {"code": {"ok": 1, "error": 2}.get(record["status"], 0)},
    }  # fmt: skip
    if record["parent_id"]:
        span["parentSpanId"] = _span_id(record["parent_id"])
    if record["ended_at"]:
        span["endTimeUnixNano"] = _nanoseconds(record["ended_at"])
    resource = {"attributes": [_attribute("service.name", "interlock")]}
    scope = {"scope": {"name": "interlock"}, "spans": [span]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}


def _attribute(name: str, value: Any) -> Record:
    if isinstance(value, bool):
        return {"key": name, "value": {"boolValue": value}}
    if isinstance(value, int):
        return {"key": name, "value": {"intValue": str(value)}}
    if isinstance(value, float):
        return {"key": name, "value": {"doubleValue": value}}
    return {
        "key": name,
        "value": {"stringValue": value if isinstance(value, str) else _json(value)},
    }


def _span_id(span_id: uuid.UUID) -> str:
    return span_id.hex[-16:]


def _nanoseconds(moment: dt.datetime) -> str:
    since = moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    return str(((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1_000)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

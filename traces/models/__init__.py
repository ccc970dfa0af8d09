"""What this side stores: the audit chain, the spans of traces, and redaction policies."""

from __future__ import annotations

from traces.models.audit import AuditEntry, AuditPayload
from traces.models.redaction import RedactionPolicy, RedactionRule
from traces.models.span import SpanPayload, SpanRow

__all__ = [
    "AuditEntry",
    "AuditPayload",
    "RedactionPolicy",
    "RedactionRule",
    "SpanPayload",
    "SpanRow",
]

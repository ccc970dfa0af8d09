"""What this side stores: the audit chain and the spans of traces."""

from __future__ import annotations

from traces.models.audit import AuditEntry, AuditPayload
from traces.models.span import SpanPayload, SpanRow

__all__ = ["AuditEntry", "AuditPayload", "SpanPayload", "SpanRow"]

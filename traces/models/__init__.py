"""What this side stores: the audit chain, the spans of traces, redaction and retention policies, holds, deletions."""

from __future__ import annotations

from traces.models.audit import AuditEntry, AuditPayload
from traces.models.deletion import DeletionRequest
from traces.models.export import ExportJob
from traces.models.holds import LegalHold
from traces.models.redaction import RedactionPolicy, RedactionRule
from traces.models.retention import DataClass, RetentionPolicy, RetentionTotal
from traces.models.span import SpanPayload, SpanRow

__all__ = [
    "AuditEntry",
    "AuditPayload",
    "DataClass",
    "DeletionRequest",
    "ExportJob",
    "LegalHold",
    "RedactionPolicy",
    "RedactionRule",
    "RetentionPolicy",
    "RetentionTotal",
    "SpanPayload",
    "SpanRow",
]

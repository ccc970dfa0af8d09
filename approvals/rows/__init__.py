"""Rows of this side, one file a subject; `approvals.models` brings them together."""

"""Sharing the work on a request: claims and assignments, escalation, presence, saved views."""

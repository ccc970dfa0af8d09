"""Redaction policies at work: compiled, cached in each process, and checked before they are stored."""

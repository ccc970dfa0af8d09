"""Exports of traces: asked for with a reason, redacted anew, written by a job, fetched once, gone after a day."""

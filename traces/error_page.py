"""Django's own error page and mail (only with DEBUG on), with everything in them redacted."""

from __future__ import annotations

from django.views.debug import ExceptionReporter

from traces.gate import redactor


class RedactingReporter(ExceptionReporter):
    """The standard reporter, redacted."""

    def get_traceback_html(self) -> str:
        """The page."""
        return redactor().text(super().get_traceback_html())

    def get_traceback_text(self) -> str:
        """The mail."""
        return redactor().text(super().get_traceback_text())

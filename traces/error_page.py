"""Django's own error page and mail (only with DEBUG on), with everything in them redacted."""

from __future__ import annotations

from django.utils.safestring import SafeString
from django.views.debug import ExceptionReporter

from traces.gate import redactor


class RedactingReporter(ExceptionReporter):
    """The standard reporter, redacted."""

    def get_traceback_html(self) -> SafeString:
        """The page."""
        return SafeString(redactor().text(super().get_traceback_html()))

    def get_traceback_text(self) -> SafeString:
        """The mail."""
        return SafeString(redactor().text(super().get_traceback_text()))

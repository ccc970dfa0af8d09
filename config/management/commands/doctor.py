"""`manage.py doctor`: what is missing on this machine, and how to mend it."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from config.doctor import examine


class Command(BaseCommand):
    """Look at everything that Interlock needs, a line each."""

    help = "Say what is missing on this machine and how to mend it."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        missing = 0
        for finding in examine():
            self.stdout.write(finding.line())
            missing += finding.essential and not finding.well
        if missing:
            raise CommandError(f"{missing} essential thing(s) missing; see the lines above")

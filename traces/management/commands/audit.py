"""`manage.py audit verify`: checks the chain; exit status 0 whole, 1 tampered, 2 unsealed."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from traces.audit.verify import verify


class Command(BaseCommand):
    help = "Check the audit chain. Exit status: 0 whole, 1 tampered with, 2 unsealed."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("what", choices=["verify"])

    def handle(self, *args: Any, **options: Any) -> None:
        """Print one line a finding, then one line that sums up."""
        report = verify()
        for line in report.tampered:
            self.stdout.write(f"tampered: {line}")
        for line in report.unsealed:
            self.stdout.write(f"unsealed: {line}")
        verdict = {0: "whole", 1: "TAMPERED WITH", 2: "whole, but entries wait for their seal"}
        self.stdout.write(
            f"audit chain: {verdict[report.exit_status]}; {report.entries} entries, head"
            f" {report.head[:16]}, {report.anchors} anchors, {report.waiting} waiting"
        )
        if report.exit_status:
            sys.exit(report.exit_status)

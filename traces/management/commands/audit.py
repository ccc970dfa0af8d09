"""`manage.py audit verify`: checks the chain; exit status 0 whole, 1 tampered, 2 unsealed."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from traces.audit.verify import Report, verify

VERDICTS = {0: "whole", 1: "TAMPERED WITH", 2: "whole, but entries wait for their seal"}


class Command(BaseCommand):
    help = "Check the audit chain. Exit status: 0 whole, 1 tampered with, 2 unsealed."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("what", choices=["verify"])
        parser.add_argument(
            "--anchors",
            type=Path,
            metavar="FILE",
            help="a copy of the anchors that was kept elsewhere",
        )
        parser.add_argument(
            "--json", action="store_true", help="print the report as one JSON object"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Print one line a finding, then one line that sums up; or all of it as JSON."""
        copy = options["anchors"]
        if copy is not None and not copy.is_file():
            raise CommandError(f"--anchors: {copy} is not a file.", returncode=3)
        report = verify(copy)
        self.stdout.write(_as_json(report) if options["json"] else _as_text(report))
        if report.exit_status:
            sys.exit(report.exit_status)


def _as_json(report: Report) -> str:
    return json.dumps({"exit_status": report.exit_status, **dataclasses.asdict(report)})


def _as_text(report: Report) -> str:
    lines = [f"tampered: {line}" for line in report.tampered]
    lines += [f"unsealed: {line}" for line in report.unsealed]
    lines.append(
        f"audit chain: {VERDICTS[report.exit_status]}; {report.entries} entries, head"
        f" {report.head[:16]}, {report.anchors} anchors, {report.waiting} waiting"
    )
    return "\n".join(lines)

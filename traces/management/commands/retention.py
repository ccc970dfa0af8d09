"""`manage.py retention run [--dry-run]`: lets go of what has been kept long enough."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from traces.retention.sweep import sweep


class Command(BaseCommand):
    """Delete what is older than its class is kept."""

    help = "Delete what has been kept long enough; --dry-run only counts it."

    def add_arguments(self, parser: CommandParser) -> None:
        """`run [--dry-run]`."""
        parser.add_argument("what", choices=["run"])
        parser.add_argument("--dry-run", action="store_true", help="only count")

    def handle(self, *args: Any, **options: Any) -> None:
        """One line a class."""
        verb = "would go" if options["dry_run"] else "deleted"

        def tell(name: str, kept: str, rows: int) -> None:
            self.stdout.write(
                f"{name}: {rows} {verb} (kept {kept} after the run's end, unless a policy says otherwise)"
            )

        sweep(options["dry_run"], tell)

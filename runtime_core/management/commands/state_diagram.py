"""`manage.py state_diagram`: write docs/state_machine.md anew from the table of moves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from runtime_core import state_diagram


class Command(BaseCommand):
    """Generate the page about the run's states."""

    help = "Write docs/state_machine.md from the table of moves."

    def handle(self, *args: Any, **options: Any) -> None:
        path = Path(settings.BASE_DIR) / state_diagram.PAGE
        path.write_text(state_diagram.page())
        self.stdout.write(f"wrote {state_diagram.PAGE}")

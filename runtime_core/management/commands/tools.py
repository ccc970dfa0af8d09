"""`manage.py tools list`: what agents of this deployment can be given."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from runtime_core.tools import registry


class Command(BaseCommand):
    """List the tools that the settings' modules declare."""

    help = "List the tools: name, risk, effect, timeout, first line of the description."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """`list`."""
        parser.add_argument("what", choices=["list"])

    def handle(self, *args: Any, **options: Any) -> None:
        """One line a tool."""
        tools = [tool.spec for tool in registry().values()]
        width = max((len(spec.name) for spec in tools), default=0)
        for spec in sorted(tools, key=lambda spec: spec.name):
            says = spec.description.splitlines()[0]
            self.stdout.write(
                f"{spec.name:<{width}}  {spec.risk:<8}  {spec.effect:<13}"
                f"  {spec.timeout_seconds:>4} s  {says}"
            )

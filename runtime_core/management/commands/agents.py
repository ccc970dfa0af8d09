"""`manage.py agents apply FILE`: makes the agents of a file, a new version of each one that changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from django.core.management.base import BaseCommand, CommandError, CommandParser

from runtime_core import commands
from runtime_core.access import Can
from runtime_core.management.people import actor, person, project
from runtime_core.transactions import one_commit

FILE_BYTES = 1_000_000


class Command(BaseCommand):
    """Apply agent definitions from YAML: all of a file or nothing of it."""

    help = "Apply agent definitions from a YAML file: all of it or nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        """`apply FILE [--user U] [--project P]`."""
        parser.add_argument("what", choices=["apply"])
        parser.add_argument("file", type=Path)
        parser.add_argument("--user", help="who does it; default: the only superuser there is")
        parser.add_argument("--project", help="for agents that name no project")

    def handle(self, *args: Any, **options: Any) -> None:
        """One line an agent."""
        definitions = read_definitions(options["file"])
        who = person(options["user"])
        told: list[str] = []
        with one_commit("agents"):
            for definition in definitions:
                place = project(str(definition.get("project") or options["project"] or "") or None)
                version, changed = commands.apply_agent(
                    actor(who, place, Can.MANAGE), place, definition
                )
                state = "new version" if changed else "unchanged, version"
                told.append(f"{place.slug}/{version.agent.name}: {state} {version.number}")
        self.stdout.write("\n".join(told))


def read_definitions(path: Path) -> list[dict[str, Any]]:
    """The agents of a YAML file; CommandError says what is wrong with it."""
    try:
        with path.open("rb") as file:
            text = file.read(FILE_BYTES + 1)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}") from None
    if len(text) > FILE_BYTES:
        raise CommandError(f"{path}: more than {FILE_BYTES} bytes")
    try:
        loaded = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise CommandError(f"{path}: no valid YAML: {' '.join(str(error).split())}") from None
    agents = loaded.get("agents") if isinstance(loaded, dict) else None
    if not isinstance(agents, list) or not all(isinstance(agent, dict) for agent in agents):
        raise CommandError(f"{path}: it must be `agents:` with a list of definitions")
    if not agents:
        raise CommandError(f"{path}: there is no agent in it")
    return agents

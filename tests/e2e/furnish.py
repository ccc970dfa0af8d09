"""Run inside the running product's environment: applies the agents, issues tokens, prints them as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import django
import yaml

django.setup()

from django.contrib.auth.models import User

from runtime_core import commands, demo
from runtime_core.models import ApiToken, Project
from runtime_core.values import Actor
from tests.e2e.agents import PAUSES_MS, SCRIPTS, definitions


def furnish(folder: Path) -> dict[str, str]:
    """The tokens of the demo's people, by name."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, turns in SCRIPTS.items():
        script = {"name": name, "turns": turns, "chunk_ms": PAUSES_MS.get(name, 0)}
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(script))
    project = Project.objects.get(slug=demo.PROJECT)
    admin = User.objects.get(username="admin")
    actor = Actor(admin.pk, admin.username, via="system", superuser=True)
    for definition in definitions(str(folder)):
        commands.apply_agent(actor, project, definition)
    return {
        name: ApiToken.issue(User.objects.get(username=name), project if roles else None, "e2e")[1]
        for name, roles in demo.PEOPLE.items()
    }


if __name__ == "__main__":
    print(json.dumps(furnish(Path(sys.argv[1]))))

"""Run inside the running product's environment: applies the agents, issues tokens, prints them as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import django
import yaml

django.setup()

from django.contrib.auth.models import User

from approvals.policy import versions as policy_versions
from approvals.terms import defaults
from runtime_core import commands, demo
from runtime_core.models import ApiToken, Project
from runtime_core.values import Actor, Risk
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
    hurry(actor)
    return {
        name: ApiToken.issue(User.objects.get(username=name), project if roles else None, "e2e")[1]
        for name, roles in demo.PEOPLE.items()
    }


def hurry(actor: Actor) -> None:
    """The default terms of each risk, but for the seconds that everybody would wait to be undone."""
    for risk in Risk:
        terms = defaults(risk)
        fields = {**terms.as_json(), "undo_seconds": min(1, terms.undo_seconds)}
        policy_versions.add(actor, {**fields, "name": f"As by default: {risk}", "risk": risk.value})


if __name__ == "__main__":
    print(json.dumps(furnish(Path(sys.argv[1]))))

"""What a first start finds: demo people, one project, two agents. Only `up` and `demo` install it, on loopback."""

from __future__ import annotations

from pathlib import Path

import yaml
from django.conf import settings
from django.contrib.auth.models import User
from django.utils.module_loading import import_string

from runtime_core import commands
from runtime_core.models import Membership, Project, Role
from runtime_core.transactions import one_commit
from runtime_core.values import Actor

PROJECT = "demo"
PASSWORD = "interlock-demo"  # noqa: S105 - printed at each start, and only loopback is served
PEOPLE: dict[str, tuple[str, ...]] = {
    "admin": (Role.ADMIN,),
    "operator": (Role.OPERATOR,),
    "approver": (Role.APPROVER,),
    "approver2": (Role.APPROVER,),
    "viewer": (Role.VIEWER,),
    "stranger": (),
}
AGENTS = "evals/agents.yaml"
# What else a demo needs in its database, such as orders to refund.
SEEDS = ("evals.shop.demo_orders.seed",)


def install() -> None:
    """Create what is missing; what is there already is left as people have changed it."""
    with one_commit("demo"):
        project, _ = Project.objects.get_or_create(slug=PROJECT, defaults={"name": "Demo"})
        people = {name: _person(name, project, roles) for name, roles in PEOPLE.items()}
        for seed in SEEDS:
            import_string(seed)()
    admin = people["admin"]
    actor = Actor(admin.pk, admin.username, via="system", superuser=True)
    for definition in definitions(Path(settings.BASE_DIR) / AGENTS):
        if not project.agents.filter(name=definition["name"]).exists():
            commands.apply_agent(actor, project, definition)


def definitions(path: Path) -> list[dict[str, object]]:
    """The agents of a YAML file."""
    loaded = yaml.safe_load(path.read_text())
    return list(loaded["agents"])


def _person(name: str, project: Project, roles: tuple[str, ...]) -> User:
    user = User.objects.filter(username=name).first()
    if user is None:
        admin = name == "admin"
        user = User.objects.create_user(
            name, f"{name}@demo.invalid", PASSWORD, is_staff=admin, is_superuser=admin
        )
        for role in roles:
            Membership.objects.get_or_create(project=project, user=user, role=role)
    return user

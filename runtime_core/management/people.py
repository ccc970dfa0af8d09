"""Whom a command acts for, and in which project: found by name, or the only one there is."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.core.management.base import CommandError, CommandParser

from runtime_core import access
from runtime_core.access import Can
from runtime_core.models import Project
from runtime_core.values import Actor


def add_person_arguments(parser: CommandParser) -> None:
    """`--user` and `--project`."""
    parser.add_argument("--user", help="who does it; default: the only superuser there is")
    parser.add_argument("--project", help="the project's slug; default: the only one there is")


def person(name: str | None) -> User:
    """The active person of that name, or the only superuser."""
    rows = User.objects.filter(is_active=True)
    rows = rows.filter(username=name) if name else rows.filter(is_superuser=True)
    found = list(rows[:2])
    if len(found) == 1:
        return found[0]
    if name:
        raise CommandError(f"there is no active user {name!r}")
    raise CommandError("say who does it: --user NAME")


def project(slug: str | None) -> Project:
    """The project of that slug, or the only one."""
    rows = Project.objects.filter(slug=slug) if slug else Project.objects.all()
    found = list(rows[:2])
    if len(found) == 1:
        return found[0]
    if slug:
        raise CommandError(f"there is no project {slug!r}")
    raise CommandError("say in which project: --project SLUG")


def actor(user: User, place: Project, right: Can) -> Actor:
    """The person as an actor; NotFound or NotAllowed if they may not do this there."""
    access.require(user, place.id, right)
    return Actor(user.pk, user.username, via="command", superuser=user.is_superuser)

"""`manage.py token create`: a bearer token for the API, printed once and alone, so that a script can take it."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from runtime_core import access, ports
from runtime_core.models import ApiToken, Project
from runtime_core.transactions import one_commit
from runtime_core.values import Actor, Audit

COMMAND_LINE = Actor(user_id=None, name="command line", via="command")


class Command(BaseCommand):
    """Make a token for a user, for all their projects or for one."""

    help = "Make a bearer token for the API; only its hash is kept, so the text is shown this once."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
        create = verbs.add_parser("create", help="make a token and print it alone")
        create.add_argument("--user", required=True, help="whose token: their user name")
        create.add_argument("--project", help="the slug of the only project that it opens")
        create.add_argument("--name", default="", help="what it is for")
        create.add_argument(
            "--machine", action="store_true", help="a service token: a program decides with it"
        )

    def handle(
        self,
        *args: Any,
        user: str,
        project: str | None,
        name: str,
        machine: bool = False,
        **options: Any,
    ) -> None:
        try:
            owner = _user(user)
            self.stdout.write(_issue(owner, _project(owner, project), name, machine))
        except DatabaseError as error:
            reason = str(error).strip().splitlines()[0]
            raise CommandError(f"the database does not answer: {reason}") from None


def _user(name: str) -> AbstractBaseUser:
    model = get_user_model()
    try:
        owner = model.objects.get_by_natural_key(name)
    except model.DoesNotExist:
        raise CommandError(f"there is no user {name!r}") from None
    if not owner.is_active:
        raise CommandError(f"{name!r} is not active, so a token of theirs would open nothing")
    return owner


def _project(owner: AbstractBaseUser, slug: str | None) -> Project | None:
    if slug is None:
        return None
    project = access.visible_projects(owner).filter(slug=slug).first()
    if project is None:
        raise CommandError(f"{owner.get_username()!r} has no role in a project {slug!r}")
    return project


def _issue(owner: AbstractBaseUser, project: Project | None, name: str, is_machine: bool) -> str:
    with one_commit("token"):
        token, text = ApiToken.issue(owner, project, name[:80], is_machine=is_machine)
        issued = Audit(
            action="token.issued",
            actor=COMMAND_LINE,
            object_type="api_token",
            object_id=str(token.id),
            project_id=project.id if project else None,
            data={"user": owner.get_username(), "name": token.name, "machine": is_machine},
        )
        ports.audit().record([issued])
    return text

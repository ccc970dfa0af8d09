"""`manage.py data delete run|thread|user ID`: deletes it with all that derives from it, and waits for the receipt."""

from __future__ import annotations

import uuid
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from runtime_core.errors import InterlockError
from runtime_core.values import Actor
from traces.deletion.person import delete_person
from traces.deletion.purge import purge
from traces.deletion.requests import delete_run, delete_thread
from traces.models import DeletionRequest

COMMAND_LINE = Actor(user_id=None, name="command line", via="command")


class Command(BaseCommand):
    """Delete a run, a thread, or all of one person."""

    help = "Delete a run, a thread or all of one person (by number), with all that derives from it."

    def add_arguments(self, parser: CommandParser) -> None:
        """`delete KIND ID [--reason TEXT]`."""
        parser.add_argument("verb", choices=["delete"])
        parser.add_argument("kind", choices=["run", "thread", "user"])
        parser.add_argument("object_id", metavar="ID")
        parser.add_argument("--reason", default="", help="kept with the request, redacted")

    def handle(self, *args: Any, **options: Any) -> None:
        """One line a table, then the receipt."""
        try:
            request = _ask(options["kind"], options["object_id"], options["reason"])
        except InterlockError as error:
            raise CommandError(error.message) from error
        except ValueError as error:
            raise CommandError(f"{options['object_id']} is no id of a {options['kind']}") from error
        purge(request.id)
        request.refresh_from_db()
        for model, rows in sorted(request.counts.items()):
            self.stdout.write(f"{model}: {rows}")
        self.stdout.write(f"{request.run_count} runs {request.state}, receipt {request.receipt}")


def _ask(kind: str, object_id: str, reason: str) -> DeletionRequest:
    if kind == "user":
        return delete_person(COMMAND_LINE, int(object_id), reason)
    of = delete_run if kind == "run" else delete_thread
    return of(COMMAND_LINE, uuid.UUID(object_id), reason)

"""`manage.py vault status | rotate`: which keys raw texts are sealed under, and bringing them all under the first."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection

from runtime_core import ports, resealing, vault
from runtime_core.values import Actor, Audit

COMMAND_LINE = Actor(user_id=None, name="command line", via="command")


class Command(BaseCommand):
    """Look at the seals of raw texts, and renew them."""

    help = "Show which keys raw texts are sealed under (status), or seal all under the first key (rotate)."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
        verbs.add_parser(
            "status", help="the keys, and how many values each seals; 1 if one is missing"
        )
        verbs.add_parser(
            "rotate", help="seal everything under the first key; may be stopped and run again"
        )

    def handle(self, *args: Any, verb: str, **options: Any) -> None:
        with connection.cursor() as cursor:
            # It reads whole tables, and nobody waits for it.
            cursor.execute("SET statement_timeout = 0")
        if verb == "rotate":
            self._rotate()
        left = self._status()
        if verb == "rotate" and left:
            raise CommandError(f"{left} values are still under other keys; run it again")

    def _status(self) -> int:
        """Print the table; how many values are not under the first key."""
        names: dict[bytes | None, str] = {key.id: key.name for key in vault.ring()}
        first, left, lost = vault.ring()[0].id, 0, 0
        for key in vault.ring():
            seals = " (seals)" if key.id == first else ""
            self.stdout.write(f"key {key.id.hex()}  {key.name}{seals}")
        for column in resealing.columns():
            for key_id, n in resealing.counts(column).items():
                name = (
                    "not sealed"
                    if key_id is None
                    else names.get(key_id, f"unknown key {key_id.hex()}")
                )
                self.stdout.write(f"{column!s:28} {n:>9}  {name}")
                left += n if key_id != first else 0
                lost += n if key_id not in names else 0
        if lost:
            raise CommandError(
                f"{lost} values cannot be opened with the keys given: add the former key to "
                "INTERLOCK_DATA_KEYS or SECRET_KEY_FALLBACKS"
            )
        return left

    def _rotate(self) -> None:
        done = 0
        for column in resealing.columns():
            for n in resealing.rotate(column):
                done += n
                self.stdout.write(f"{column}: {n}")
        if done:
            key = vault.ring()[0].id.hex()
            ports.audit().record(
                [
                    Audit(
                        "vault.rotated",
                        COMMAND_LINE,
                        "vault",
                        key,
                        data={"values": done, "key": key},
                    )
                ]
            )

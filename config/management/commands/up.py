"""`manage.py up`: the whole product in the foreground, until Ctrl-C."""

from __future__ import annotations

import errno
import importlib.util
import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import Tags
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, connection, connections
from django.utils.module_loading import import_string

from config import health
from config.services import leash
from config.services.folder import prepare
from config.services.process import ServiceFailed
from config.supervisor.lock import AlreadyRunning, FolderLock
from config.supervisor.output import say
from config.supervisor.part import PartFailed
from config.supervisor.stack import NotReady, Stack

# Demo users have a known password, so nothing but this machine may reach them.
HOST = "127.0.0.1"
# A port of a start that was just killed is free again within this time.
PORT_PATIENCE_S = 1.0
DEMO_INSTALL = "runtime_core.demo.install"
DEMO_PASSWORD = "interlock-demo"  # noqa: S105 (it is in the README)
MIGRATION_LOCK = 0x1A7E510C  # any number that is ours
MIGRATION_LOCK_WAIT_S = 60.0


class Command(BaseCommand):
    """Start services, migrations, demo data, web, worker and beat; end all of them together."""

    help = "Run everything in the foreground. Ctrl-C ends all of it."
    # Not the models' checks: those may ask the database, which is not there yet.
    requires_system_checks = (Tags.security, Tags.compatibility)

    def handle(self, *args: Any, **options: Any) -> None:
        if os.environ.pop("INTERLOCK_LEASH", ""):
            leash.bind_to_parent(signal.SIGTERM)
        require_free_port(settings.PORT)
        lock = take_folder()
        stack = Stack(
            folder=settings.DATA_FOLDER,
            base=Path(settings.BASE_DIR),
            host=HOST,
            port=settings.PORT,
            probe_host=probe_host(),
            embedded_database=settings.EMBEDDED_DATABASE,
            embedded_broker=settings.EMBEDDED_BROKER,
        )
        stack.obey_signals()
        try:
            self._run(stack, lock)
        except (ServiceFailed, PartFailed, NotReady) as error:
            raise CommandError(str(error)) from error
        finally:
            stack.stop()
            lock.release()

    def _run(self, stack: Stack, lock: FolderLock) -> None:
        stack.start_services()
        require_outside_services()
        if not stack.stopping:
            migrate(lambda: stack.stopping)
            install_demo()
        connections.close_all()
        if stack.stopping:
            return
        stack.start_parts()
        stack.wait_until_ready()
        if not stack.stopping:
            lock.write(port=settings.PORT, ready=True)
            say(welcome())
            stack.watch()
        say("stopping")


def require_free_port(port: int) -> None:
    """Raise `CommandError` if something else serves there."""
    deadline = time.monotonic() + PORT_PATIENCE_S
    while True:
        try:
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind((HOST, port))
                return
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise CommandError(f"port {port} cannot be used: {error.strerror}") from error
            if time.monotonic() > deadline:
                another = port % 60_000 + 123
                raise CommandError(
                    f"port {port} is in use; choose another one, e.g. PORT={another} make up"
                ) from error
        time.sleep(0.05)


def take_folder() -> FolderLock:
    """Make the data folder and hold it, or raise `CommandError`."""
    folder = settings.DATA_FOLDER
    try:
        prepare(folder)
        lock = FolderLock(folder.lock_file)
        lock.take(port=settings.PORT, ready=False)
    except AlreadyRunning as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(
            f"the data folder {folder.root} cannot be used: {error.strerror or error}; "
            "set INTERLOCK_DATA_DIR to a folder that can be written"
        ) from error
    return lock


def probe_host() -> str:
    """Choose a host name that the web part will answer to."""
    named = [host for host in settings.ALLOWED_HOSTS if not host.startswith((".", "*"))]
    return HOST if HOST in named or not named else named[0]


def require_outside_services() -> None:
    """Raise `CommandError` where a service that the environment names does not answer."""
    if problem := health.database_problem():
        raise CommandError(f"the database does not answer: {problem}; check DATABASE_URL")
    if problem := health.broker_problem():
        raise CommandError(f"the broker does not answer: {problem}; check REDIS_URL")


def migrate(stopping: Callable[[], bool]) -> None:
    """Bring the database to what the code needs, one starter at a time."""
    deadline = time.monotonic() + MIGRATION_LOCK_WAIT_S
    with connection.cursor() as cursor:
        while not _try_lock(cursor):
            if time.monotonic() > deadline:
                raise CommandError("another process is migrating this database; try again later")
            if stopping():
                return
            time.sleep(0.2)
        # A migration may think, and a large table may take, longer than any request.
        cursor.execute("SET idle_in_transaction_session_timeout = 0")
        cursor.execute("SET statement_timeout = 0")
        call_command("migrate", interactive=False, verbosity=0)
        cursor.execute("RESET idle_in_transaction_session_timeout")
        cursor.execute("RESET statement_timeout")
        cursor.execute("SELECT pg_advisory_unlock(%s)", [MIGRATION_LOCK])


def install_demo() -> None:
    """Make the demo's users and agents, where the product brings them."""
    if importlib.util.find_spec(DEMO_INSTALL.rpartition(".")[0]) is not None:
        import_string(DEMO_INSTALL)()


def welcome() -> str:
    """Say where it runs and how to enter."""
    return (
        f"\nInterlock runs at http://{HOST}:{settings.PORT}/\n"
        f"  log in as operator, approver, approver2, viewer or admin; password {DEMO_PASSWORD}\n"
        f"  data and logs are in {settings.DATA_DIR}; Ctrl-C stops everything\n"
    )


def _try_lock(cursor: Any) -> bool:
    try:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [MIGRATION_LOCK])
    except OperationalError as error:
        raise CommandError(f"the database does not answer: {error}") from error
    return bool(cursor.fetchone()[0])

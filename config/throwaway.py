"""The product over a data folder of its own that is gone afterwards: for measuring it and for scoring agents."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import django

from config.services.folder import data_folder
from config.supervisor.stack import Stack

HOST = "127.0.0.1"
# Whatever the caller's shell names must not be touched.
NOT_OURS = ("DATABASE_URL", "REDIS_URL", "INTERLOCK_PART", "INTERLOCK_LEASH")


@contextmanager
def throwaway_stack(prefix: str, **environment: str) -> Iterator[Stack]:
    """Set up Django on fresh services, migrated and without any rows; `start_parts` starts the rest.

    For the main thread of a process that has not set Django up, and only once in it.
    """
    root = Path(tempfile.mkdtemp(prefix=prefix))
    port = _free_port()
    for name in NOT_OURS:
        os.environ.pop(name, None)
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "INTERLOCK_DATA_DIR": str(root),
        "SECRET_KEY": secrets.token_urlsafe(48),
        "PORT": str(port),
        "LOG_LEVEL": "WARNING",
        **environment,
    }
    base = Path(__file__).resolve().parent.parent
    folder = data_folder(root)
    stack = Stack(folder, base, HOST, port, HOST, embedded_database=True, embedded_broker=True)
    try:
        stack.start_services()
        django.setup()
        _migrate()
        yield stack
    finally:
        stack.stop()
        shutil.rmtree(folder.sockets, ignore_errors=True)
        shutil.rmtree(root, ignore_errors=True)


def _migrate() -> None:
    from django.core.management import call_command

    call_command("migrate", verbosity=0)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port

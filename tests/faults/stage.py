"""Services, a database and a forking process for the tiers that run outside of pytest."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Stage:
    """What is there to be broken."""

    postgres: Any
    valkey: Any


@contextmanager
def stage() -> Iterator[Stage]:
    """A throw-away data folder with PostgreSQL, Valkey and the schema, gone at the end."""
    import django

    django.setup()
    from django.conf import settings
    from django.db import connections
    from django.test.utils import setup_databases

    from config.services.postgres import UNSAFE_FAST, Postgres
    from config.services.valkey import Valkey

    logging.disable(logging.CRITICAL)  # thousands of lost connections, all of them meant
    postgres, valkey = Postgres(settings.DATA_FOLDER, UNSAFE_FAST), Valkey(settings.DATA_FOLDER)
    postgres.start()
    valkey.start()
    try:
        setup_databases(verbosity=0, interactive=False)
        yield Stage(postgres, valkey)
    finally:
        connections.close_all()
        valkey.stop()
        postgres.stop()
        shutil.rmtree(settings.DATA_DIR, ignore_errors=True)
        shutil.rmtree(settings.DATA_FOLDER.sockets, ignore_errors=True)

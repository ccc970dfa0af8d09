"""Real PostgreSQL and Valkey for every test that asks, started once a session, gone at its end."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator

import pytest
import redis
from django.conf import settings
from django.core.management.commands import flush
from django.db import connections
from django.db.backends.postgresql.operations import DatabaseOperations

from config.services import postgres as embedded_postgres
from config.services.postgres import UNSAFE_FAST, Postgres
from config.services.valkey import Valkey

# The whole test session owns one data folder (tests/settings.py names it).


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what kills and stops processes by the points they come to: it runs apart from everything else."""
    for item in items:
        if "forks" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.alone)


@pytest.fixture(scope="session")
def data_dir() -> Iterator[None]:
    """The session's data folder, removed at the end."""
    yield
    shutil.rmtree(settings.DATA_DIR, ignore_errors=True)
    shutil.rmtree(settings.DATA_FOLDER.sockets, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_server(data_dir: None) -> Iterator[Postgres | None]:
    """The session's PostgreSQL, or None where DATABASE_URL names one."""
    if not settings.EMBEDDED_DATABASE:
        yield None
        return
    server = Postgres(settings.DATA_FOLDER, UNSAFE_FAST)
    server.start()
    yield server
    connections.close_all()
    server.stop()


@pytest.fixture(scope="session")
def valkey_server(data_dir: None) -> Iterator[Valkey | None]:
    """The session's Valkey, or None where REDIS_URL names one."""
    if not settings.EMBEDDED_BROKER:
        yield None
        return
    server = Valkey(settings.DATA_FOLDER)
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session", autouse=True)
def quick_flush() -> Iterator[None]:
    """Empty the tables between tests by deleting rows: truncating makes every file of theirs anew.

    Also lets this flush, and nothing else, pass the triggers that keep audit and messages. What migrations put
    there, the same for every test, stays.
    """
    guarded = ("audit_entry", "audit_payload", "message")
    kept = ("django_content_type", "auth_permission", "django_migrations")

    def sql_flush(
        self: DatabaseOperations, style: object, tables: list[str], **options: object
    ) -> list[str]:
        held = [table for table in guarded if table in tables]
        return [
            *(f"ALTER TABLE {table} DISABLE TRIGGER USER" for table in held),
            # References are checked at the end, so any order will do.
            "SET CONSTRAINTS ALL DEFERRED",
            *(f"DELETE FROM {self.quote_name(t)}" for t in tables if t not in kept),  # noqa: S608
            "SET CONSTRAINTS ALL IMMEDIATE",
            *(f"ALTER TABLE {table} ENABLE TRIGGER USER" for table in held),
        ]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DatabaseOperations, "sql_flush", sql_flush)
        patch.setattr(flush, "emit_post_migrate_signal", lambda *args, **kwargs: None)
        yield


@pytest.fixture
def broker(valkey_server: Valkey | None) -> Iterator[redis.Redis]:
    """A client of an empty Valkey."""
    with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=5) as client:
        client.flushdb()
        yield client


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    postgres_server: Postgres | None, valkey_server: Valkey | None
) -> None:
    """Start the servers before pytest-django makes its database; commits may send hints."""


@pytest.fixture
def process_env(transactional_db: None) -> dict[str, str]:
    """The environment in which a process of ours works on this session's test database.

    Start it as `[sys.executable, "-m", "celery", "-A", "config", …]` with this environment. It sees
    only what is committed, hence the transactional database.
    """
    return environment()


def environment() -> dict[str, str]:
    """The environment of a process of ours; the test database must be there already."""
    database = settings.DATABASES["default"]
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "PYTHONPATH": str(settings.BASE_DIR),
        "PYTHONUNBUFFERED": "1",
        "DATABASE_URL": _url(database),
        "REDIS_URL": settings.REDIS_URL,
        "PYTHON": sys.executable,
    }


def _url(database: dict[str, str]) -> str:
    if database["HOST"].startswith("/"):
        query = f"host={database['HOST']}&port={database['PORT']}"
        return f"postgresql://{embedded_postgres.ROLE}@/{database['NAME']}?{query}"
    user = (
        f"{database['USER']}:{database['PASSWORD']}" if database["PASSWORD"] else database["USER"]
    )
    return f"postgresql://{user}@{database['HOST']}:{database['PORT']}/{database['NAME']}"

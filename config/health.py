"""Answers for probes: is the process alive, and can it do its work."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

BROKER_TIMEOUT_S = 1.0


@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """Say that this process serves; ask nothing else."""
    return JsonResponse({"status": "ok"})


@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """Say whether database, broker and migrations are as the code needs them; 503 if not."""
    parts = {"database": database_problem(), "broker": broker_problem()}
    parts["migrations"] = parts["database"] or migrations_problem()
    ready = not any(parts.values())
    # What is wrong is for the log and `manage.py doctor`; a stranger only learns which part.
    body = {"status": "ok" if ready else "unavailable"} | {
        name: "unavailable" if problem else "ok" for name, problem in parts.items()
    }
    return JsonResponse(body, status=200 if ready else 503)


def database_problem() -> str | None:
    """Say in one line why the database does not answer, or None."""
    return _problem_of(_ask_database)


def broker_problem() -> str | None:
    """Say in one line why the broker does not answer, or None."""
    return _problem_of(_ask_broker)


def migrations_problem() -> str | None:
    """Say which migrations the database lacks, or None."""
    return _problem_of(_plan_migrations)


def _ask_database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def _ask_broker() -> None:
    ask = partial(redis.Redis.from_url, settings.REDIS_URL)
    with ask(socket_timeout=BROKER_TIMEOUT_S, socket_connect_timeout=BROKER_TIMEOUT_S) as client:
        client.ping()


def _plan_migrations() -> str | None:
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    names = [f"{migration.app_label}.{migration.name}" for migration, _ in plan]
    return f"not applied: {', '.join(names[:5])}" if names else None


def _problem_of(ask: Callable[[], str | None]) -> str | None:
    try:
        return ask()
    except (DatabaseError, redis.RedisError, OSError) as error:
        return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__

"""How a command says that it failed: one line that names the way out, and status 1."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import kombu.exceptions
import redis
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.core.management.base import CommandError
from django.db import InterfaceError, OperationalError, ProgrammingError

from runtime_core.errors import InterlockError

BROKER_ERRORS = (redis.ConnectionError, redis.TimeoutError, kombu.exceptions.OperationalError)


@contextmanager
def told_in_one_line() -> Iterator[None]:
    """Run a command; turn what a user can mend into one line. Set DEBUG=1 to see where it arose."""
    try:
        yield
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader (`| head`) has enough. Python must not complain again at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        line = explain(error)
        if line is None or os.environ.get("DEBUG", "").lower() in ("1", "true", "yes", "on"):
            raise
        sys.stderr.write(f"error: {line}\n")
        sys.exit(1)


def explain(error: Exception) -> str | None:
    """Say in one line what happened and what to do, or None for what is a bug."""
    if isinstance(error, OperationalError | InterfaceError):
        return _explain_database(error)
    if isinstance(error, BROKER_ERRORS):
        return f"{_embedded_or('the broker', 'EMBEDDED_BROKER', 'REDIS_URL')} ({first_line(error)})"
    if isinstance(error, ProgrammingError) and "does not exist" in str(error):
        return f"the database is not migrated ({first_line(error)}); run `manage.py migrate`"
    if isinstance(error, ValidationError):
        return "; ".join(error.messages)
    if isinstance(error, CommandError | ImproperlyConfigured | InterlockError):
        return " ".join(str(error).split())
    if isinstance(error, OSError) and error.filename:
        # Mostly the data folder: no rights, no space, not there.
        return f"{error.filename}: {error.strerror}"
    return None


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text; some drivers say the same thing in five."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _explain_database(error: Exception) -> str:
    text = first_line(error)
    if "timeout" in text.lower() and "connect" not in text.lower():
        return f"the database took too long ({text})"
    return f"{_embedded_or('the database', 'EMBEDDED_DATABASE', 'DATABASE_URL')} ({text})"


def _embedded_or(what: str, setting: str, variable: str) -> str:
    from django.conf import settings

    if getattr(settings, setting):
        return f"{what} is not running; start it with `make up`"
    return f"{what} does not answer; check {variable}"

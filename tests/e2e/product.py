"""One running product for a test session: its address, its people's ways in, and its rows."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx
import psycopg
from django.test import override_settings
from psycopg.rows import dict_row

from config.services import postgres
from config.services.folder import data_folder
from runtime_core import vault
from runtime_core.demo import PASSWORD
from tests.config.stack_process import BASE, RunningStack, command_env, wait_for

Json = Any
ENDED = ("completed", "failed", "cancelled", "timed_out")
MORE = {
    "TOOL_MODULES": "tests.e2e.tools",
    "PYTHONPATH": str(BASE),
    "LOG_LEVEL": "DEBUG",
}


class Product:
    """`manage.py up` on a folder of its own, furnished with the agents of these tests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stack = RunningStack(folder, MORE)
        self.origin = f"http://127.0.0.1:{self.stack.port}"
        self._cookies: dict[str, dict[str, str]] = {}

    def start(self) -> Product:
        self.stack.wait_until_ready(100)
        self.tokens = self._furnish()
        return self

    def stop(self) -> None:
        if "_database" in self.__dict__:
            self._database.close()
        if self.stack.process.poll() is None:
            self.stack.end(signal.SIGTERM)

    # ── Ways in ─────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def api(self, name: str) -> Iterator[httpx.Client]:
        """The API as this person, by token."""
        headers = {"Authorization": f"Bearer {self.tokens[name]}"}
        with httpx.Client(base_url=f"{self.origin}/api/v1", headers=headers, timeout=30) as client:
            yield client

    def get(self, name: str, path: str) -> Json:
        """The JSON of an API read."""
        with self.api(name) as client:
            return client.get(path).raise_for_status().json()

    def post(self, name: str, path: str, body: Json) -> Json:
        """The JSON of an API write."""
        with self.api(name) as client:
            answer = client.post(path, json=body)
            assert answer.is_success, answer.text
            return answer.json()

    def cookies(self, name: str) -> dict[str, str]:
        """A session of this person, the same one for all who ask."""
        if name not in self._cookies:
            self._cookies[name] = self.log_in(name)
        return self._cookies[name]

    def log_in(self, name: str) -> dict[str, str]:
        """The cookies of a new session, by the login form."""
        with httpx.Client(base_url=self.origin, timeout=30) as client:
            client.get("/login/").raise_for_status()
            form = {
                "username": name,
                "password": PASSWORD,
                "csrfmiddlewaretoken": client.cookies["csrftoken"],
            }
            assert client.post("/login/", data=form).status_code == 302
            return dict(client.cookies)

    # ── Runs ────────────────────────────────────────────────────────────────────────────────────

    def start_run(self, agent: str, input: str = "Do it", **more: Json) -> str:
        """The id of a new run, started by the operator."""
        body = {"agent": agent, "input": input, **more}
        return str(self.post("operator", "/runs", body)["id"])

    def open_interrupt(self, run: str) -> Json:
        """The run's first open request as soon as there is one."""
        found: list[Json] = []

        def is_there() -> bool:
            now = self.get("approver", f"/runs/{run}")
            found[:] = now["interrupts"]
            assert found or now["status"] not in ENDED, f"the run ended: {now}"
            return bool(found)

        wait_for(is_there, 30, f"a request of {run}")
        return self.get("approver", f"/interrupts/{found[0]}")

    def decide(
        self, interrupt: Json, action: str = "approve", *, by: str = "approver", **more: Json
    ) -> Json:
        """Decide over the API on what was read."""
        body = {
            "action": action,
            "version": interrupt["version"],
            "digest": interrupt["digest"],
            **more,
        }
        return self.post(by, f"/interrupts/{interrupt['id']}/decisions", body)

    def wait_for_status(self, run: str, *statuses: str, within_s: float = 40) -> Json:
        """The run as soon as it has one of these (any end, if none is named)."""
        wanted = statuses or ENDED
        last: list[Json] = [None]

        def has() -> bool:
            last[0] = self.get("operator", f"/runs/{run}")
            return last[0]["status"] in wanted

        wait_for(has, within_s, f"{run} is {' or '.join(wanted)}")
        return last[0]

    # ── Rows ────────────────────────────────────────────────────────────────────────────────────

    def rows(self, query: str, *values: object) -> list[dict[str, Any]]:
        """What the product's own database holds."""
        return self._database.execute(query, values).fetchall()

    def one(self, query: str, *values: object) -> Any:
        """The only value of the only row."""
        (row,) = self.rows(query, *values)
        (value,) = row.values()
        return value

    def told(self, run: str) -> list[str]:
        """The messages of the run as the model was sent them, opened with the product's own key."""
        query = "SELECT position, body FROM message WHERE run_id = %s ORDER BY position"
        rows = [(row["position"], row["body"]) for row in self.rows(query, run)]
        return self._opened((blob, vault.context("message", "body", run, at)) for at, blob in rows)

    def results(self, run: str) -> list[str]:
        """The raw results of the run's calls that have one, oldest first."""
        query = "SELECT id, result_text FROM tool_call WHERE run_id = %s ORDER BY step, position"
        rows = [
            (row["id"], row["result_text"]) for row in self.rows(query, run) if row["result_text"]
        ]
        return self._opened(
            (blob, vault.context("tool_call", "result_text", id)) for id, blob in rows
        )

    def _opened(self, sealed: Iterable[tuple[bytes, str]]) -> list[str]:
        key = data_folder(self.folder).secret_key_file.read_text().strip()
        try:
            with override_settings(SECRET_KEY=key):
                vault.forget_keys()
                return [vault.open(blob, context) for blob, context in sealed]
        finally:
            vault.forget_keys()

    def stored_events(self, run: str) -> list[Json]:
        """The run's events from the rows, checked to be dense."""
        found = self.rows(
            "SELECT seq, type, step, data FROM event WHERE run_id = %s ORDER BY seq", run
        )
        assert [row["seq"] for row in found] == list(range(1, len(found) + 1))
        return found

    def workspace(self, run: str) -> Path:
        """The folder that the run works in."""
        (folder,) = (
            path for path in (self.folder / "workspaces").rglob(f"*{run}*") if path.is_dir()
        )
        return folder

    def logs(self) -> str:
        """All that any of its processes has written."""
        files = [self.stack.log, *sorted((self.folder / "logs").rglob("*"))]
        return "\n".join(path.read_text(errors="replace") for path in files if path.is_file())

    @cached_property
    def _database(self) -> psycopg.Connection[dict[str, Any]]:
        return psycopg.connect(
            host=str(data_folder(self.folder).sockets), port=postgres.PORT, user=postgres.ROLE,
            dbname=postgres.DATABASE, autocommit=True, row_factory=dict_row,
        )  # fmt: skip

    def _furnish(self) -> dict[str, str]:
        done = subprocess.run(
            [sys.executable, "-m", "tests.e2e.furnish", str(self.folder / "e2e-scripts")],
            cwd=BASE,
            env=command_env(
                self.folder, self.stack.port, {**MORE, "DJANGO_SETTINGS_MODULE": "config.settings"}
            ),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout.splitlines()[-1]))


def remove(folder: Path) -> None:
    """Take away a stopped product's folder."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(data_folder(folder).sockets, ignore_errors=True)

"""`manage.py demo`: the main job from start to end on a stack of its own, decided by you or by `--auto`."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from config.demo_client import Client
from runtime_core.models import ApiToken

AGENT = "code-fixer"
TASK = "The slugify package has a failing test. Find out why and mend it."
START_PATIENCE_S = 120.0
RUN_PATIENCE_S = 120.0


class Command(BaseCommand):
    """Start the product, let an agent work, stop at the approval, decide, and show what came of it."""

    help = "Do the main job without a person (--auto), or ask here for the decision."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--auto", action="store_true", help="approve as the demo approver")

    def handle(self, *args: Any, auto: bool = False, **options: Any) -> None:
        ask = sys.stdin.isatty() and not auto
        self.stdout.write("starting a stack of its own, gone again at the end")
        self.stdout.flush()
        with running_product() as (base, tokens):
            operator, approver = Client(base, tokens["operator"]), Client(base, tokens["approver"])
            run = operator.post("/api/v1/runs", {"agent": AGENT, "input": TASK})
            self.stdout.write(f"run {run['id']} started by operator: {TASK}")
            self._follow(operator, approver, run["id"], ask)
            self._show(operator.get(f"/api/v1/runs/{run['id']}"), base)

    def _follow(self, operator: Client, approver: Client, run_id: str, ask: bool) -> None:
        until = time.monotonic() + RUN_PATIENCE_S
        writing = False
        for event in operator.follow(run_id):
            if event["type"] == "text_delta":
                self._write(event["data"]["text"], writing)
                writing = True
                continue
            if writing:
                self.stdout.write("")
                writing = False
            if line := describe(event):
                self.stdout.write(f"  {event['seq']:>3}  {line}")
            if event["type"] == "interrupt":
                self._decide(approver, event["data"]["id"], ask)
                until = time.monotonic() + RUN_PATIENCE_S
            if time.monotonic() > until:
                raise CommandError("the run takes too long; look at the logs in the data folder")

    def _write(self, text: str, writing: bool) -> None:
        indented = text.replace("\n", "\n       ")
        self.stdout.write(indented if writing else f"       {indented}", ending="")
        self.stdout.flush()

    def _decide(self, approver: Client, interrupt_id: str, ask: bool) -> None:
        interrupt = approver.get(f"/api/v1/interrupts/{interrupt_id}")
        self.stdout.write(
            f"\nThe agent wants to run {interrupt['tool']} ({interrupt['risk']} risk). "
            "Nothing happens until a person decides."
        )
        for name, value in interrupt["args"].items():
            self.stdout.write(f"  {name}: {shortened(value)}")
        decision = {"version": interrupt["version"], "digest": interrupt["digest"]}
        decision |= asked() if ask else {"action": "approve"}
        approver.post(f"/api/v1/interrupts/{interrupt_id}/decisions", decision)
        self.stdout.write(f"approver decided: {decision['action']}\n")

    def _show(self, run: dict[str, Any], base: str) -> None:
        if run["error"]:
            self.stdout.write(run["error"]["message"])
        self.stdout.write(
            f"\n{run['status']}: steps {run['steps']}, tokens {sum_tokens(run['usage'])}"
        )
        self.stdout.write(
            f"trace: {base}/traces/{run['id']}/  (gone with this stack; make up keeps such pages)"
        )
        if run["status"] != "completed":
            raise CommandError(f"the demo run ended as {run['status']}")


@contextmanager
def running_product() -> Iterator[tuple[str, dict[str, str]]]:
    """The whole product on a free port and an own data folder, ended afterwards; its address and people's tokens."""
    folder = demo_folder()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    port = free_port()
    env = {
        **os.environ,
        "INTERLOCK_DATA_DIR": str(folder),
        "PORT": str(port),
        "INTERLOCK_LEASH": "1",
    }
    for name in ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "INTERLOCK_PART"):
        env.pop(name, None)
    log = folder / "demo.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "up"],
            cwd=settings.BASE_DIR,
            env=env,
            stdout=output,
            stderr=output,
        )
        try:
            base = f"http://127.0.0.1:{port}"
            wait_until_ready(process, base, log)
            yield base, {user: token(env, user) for user in ("operator", "approver")}
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(20)


def demo_folder() -> Path:
    """Where the demo's own data goes: beside the data folder, so that it never touches the data of `make up`."""
    named = os.environ.get("INTERLOCK_DATA_DIR")
    return Path(f"{named.rstrip('/')}-demo") if named else Path(settings.BASE_DIR) / ".demo"


def wait_until_ready(process: subprocess.Popen[bytes], base: str, log: Path) -> None:
    """Return when it serves; CommandError with the last line of its log if it does not come up."""
    until = time.monotonic() + START_PATIENCE_S
    while time.monotonic() < until:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"{base}/readyz", timeout=2):  # noqa: S310 - loopback
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    else:
        raise CommandError(
            f"the product is not up after {START_PATIENCE_S:.0f} s: is the machine too busy? (see {log.parent}/logs)"
        )
    lines = log.read_text().strip().splitlines() or ["it said nothing"]
    raise CommandError(f"the product did not start: {lines[-1][:300]} (see {log})")


def token(env: dict[str, str], user: str) -> str:
    """A token of a demo user, made by the product's own command."""
    made = subprocess.run(  # noqa: S603 - ourselves
        [sys.executable, "manage.py", "token", "create", "--user", user, "--project", "demo"],
        cwd=settings.BASE_DIR,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    text = made.stdout.strip()
    if not text.startswith(ApiToken.PREFIX):
        raise CommandError(f"no token for {user}: {made.stderr.strip()[:300]}")
    return text


def free_port() -> int:
    """A port that nobody uses right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def asked() -> dict[str, Any]:
    """What the person at the terminal decides."""
    while True:
        answer = input("Approve? [y]es, [n]o: ").strip().lower()
        if answer in ("y", "yes"):
            return {"action": "approve"}
        if answer in ("n", "no"):
            return {
                "action": "reject",
                "reason": input("Why (the agent sees this): ") or "no reason given",
            }


def describe(event: dict[str, Any]) -> str:
    """One event as a line; empty for those that say nothing to a reader."""
    data = event["data"]
    match event["type"]:
        case "run_status":
            return f"{data['from'] or 'new'} → {data['to']} ({data['cause']})"
        case "tool_call_start":
            return f"{data['tool']} {shortened(data['args'])}"
        case "tool_call_result":
            return f"{data['tool']} {data['status']}: {shortened(data['result'])}"
        case "progress":
            return shortened(data["message"])
        case "interrupt":
            return f"asks a person: {data['tool']}"
        case "error":
            return f"error {data['code']}: {data['message']}"
        case _:
            return ""


def shortened(value: Any) -> str:
    """A value on one line of at most 160 characters."""
    text = " ".join(str(value).split())
    return text if len(text) <= 160 else f"{text[:159]}…"


def sum_tokens(usage: dict[str, Any]) -> int:
    """Input and output tokens together."""
    return int(usage.get("input_tokens", 0)) + int(usage.get("output_tokens", 0))

"""`manage.py up`: the whole product in the foreground, and nothing of it afterwards."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.config.stack_process import RunningStack, free_port, manage, wait_for

pytestmark = [pytest.mark.faults, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def base() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="interlock-up-", dir="/tmp"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def running(base: Path) -> Iterator[RunningStack]:
    stack = RunningStack(base / "shared")
    yield stack.wait_until_ready()
    stack.end(signal.SIGTERM)


def test_it_serves_pages_when_it_says_so(running: RunningStack) -> None:
    assert running.get("/healthz") == (200, {"status": "ok"})
    assert running.get("/readyz")[0] == 200
    assert f"http://127.0.0.1:{running.port}/" in running.log.read_text()


def test_a_second_one_on_the_same_folder_is_refused(running: RunningStack) -> None:
    answer = manage("up", folder=running.folder, port=free_port())

    assert answer.returncode == 1
    assert len(answer.stderr.splitlines()) == 1
    assert f"process {running.process.pid}, port {running.port}" in answer.stderr


def test_a_second_one_on_the_same_port_starts_nothing(running: RunningStack, base: Path) -> None:
    answer = manage("up", folder=base / "other", port=running.port)

    assert answer.returncode == 1
    assert f"port {running.port} is in use" in answer.stderr
    assert len(answer.stderr.splitlines()) == 1
    assert not (base / "other" / "postgres").exists()


def test_commands_in_another_terminal_find_its_database(running: RunningStack) -> None:
    answer = manage("migrate", "--check", folder=running.folder)

    assert answer.returncode == 0, answer.stderr


def test_the_doctor_finds_a_running_stack_well(running: RunningStack) -> None:
    answer = manage("doctor", folder=running.folder, port=running.port)

    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "database" in answer.stdout
    assert "missing" not in [line.split()[0] for line in answer.stdout.splitlines() if line]


@pytest.mark.parametrize("word", ["daphne", "worker", "beat", "valkey-server", "bin/postgres"])
def test_a_killed_part_is_started_again(running: RunningStack, word: str) -> None:
    before = running.pid_of(word)
    assert before is not None

    os.kill(before, signal.SIGKILL)

    wait_for(lambda: running.pid_of(word) not in (None, before), what=f"{word} again")
    wait_for(lambda: running.get("/readyz")[0] == 200, what="ready again")
    assert "starting it again" in running.log.read_text()


def test_each_start_finds_the_data_of_the_one_before_however_it_ended(base: Path) -> None:
    folder = base / "kept"
    first = RunningStack(folder).wait_until_ready()
    made = manage(
        "shell",
        "-v",
        "0",
        "-c",
        "from django.contrib.auth.models import User; User.objects.create_user('ana')",
        folder=folder,
    )
    assert made.returncode == 0, made.stderr
    assert len(first.processes()) > 5

    begun = time.monotonic()
    assert first.end(signal.SIGTERM) == 0
    assert time.monotonic() - begun < 10
    assert first.processes() == []

    second = RunningStack(folder).wait_until_ready()
    assert _has_user(folder, "ana")

    left_by_the_second = set(second.processes())
    second.process.kill()
    second.process.wait()
    third = RunningStack(folder).wait_until_ready()  # at once, while its parts are still ending
    assert not left_by_the_second & set(third.processes())
    assert third.get("/readyz")[0] == 200
    assert _has_user(folder, "ana")

    assert third.end(signal.SIGINT) == 0
    assert third.processes() == []


def test_kill_9_ends_all_of_it(base: Path) -> None:
    stack = RunningStack(base / ("long-" * 30)).wait_until_ready()  # longer than a socket's path

    stack.process.kill()
    stack.process.wait()

    wait_for(lambda: stack.processes() == [], 10, "nothing left after kill -9")


def test_a_stop_during_the_start_leaves_nothing(base: Path) -> None:
    stack = RunningStack(base / "early")
    wait_for(lambda: stack.pid_of("bin/postgres"), what="the database starts")

    stack.end(signal.SIGTERM)

    assert stack.processes() == []


def test_a_database_that_does_not_answer_is_named_without_its_password(base: Path) -> None:
    url = f"postgresql://someone:secret-word@127.0.0.1:{free_port()}/nothing"

    answer = manage("up", folder=base / "nodb", port=free_port(), more={"DATABASE_URL": url})

    assert answer.returncode == 1
    assert len(answer.stderr.splitlines()) == 1
    assert "check DATABASE_URL" in answer.stderr
    assert "secret-word" not in answer.stderr + answer.stdout


def test_a_broker_that_does_not_answer_is_named(base: Path) -> None:
    url = f"redis://127.0.0.1:{free_port()}/0"

    answer = manage("up", folder=base / "nobroker", port=free_port(), more={"REDIS_URL": url})

    assert answer.returncode == 1
    assert len(answer.stderr.splitlines()) == 1
    assert "check REDIS_URL" in answer.stderr


@pytest.mark.parametrize("port", ["0", "65536", "eighty", "-1"])
def test_a_port_that_is_none_is_refused(base: Path, port: str) -> None:
    answer = manage("up", folder=base / "noport", more={"PORT": port})

    assert answer.returncode == 1
    assert "PORT" in answer.stderr
    assert len(answer.stderr.splitlines()) == 1


def test_a_port_taken_by_somebody_else_is_refused(base: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        answer = manage("up", folder=base / "taken", port=other.getsockname()[1])

    assert answer.returncode == 1
    assert "is in use" in answer.stderr


def test_j1_any_host_starts_nothing(base: Path) -> None:
    answer = manage("up", folder=base / "any", port=free_port(), more={"ALLOWED_HOSTS": "*"})

    assert answer.returncode == 1
    assert "config.E002" in answer.stderr
    assert not (base / "any" / "postgres").exists()


def _has_user(folder: Path, name: str) -> bool:
    answer = manage(
        "shell",
        "-v",
        "0",
        "-c",
        "from django.contrib.auth.models import User;"
        f"print(User.objects.filter(username={name!r}).exists())",
        folder=folder,
    )
    return answer.stdout.strip() == "True"
